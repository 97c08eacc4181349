#include "actors/reachable_address.hpp"

#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "actors/node.hpp"
#include "base/descriptor.hpp"
#include "base/name_lookup.hpp"

namespace speedo {
namespace {

// Addresses set aside for documentation: nobody has them, so the default route leads there.
constexpr const char* kFarIpv4 = "192.0.2.1";
constexpr const char* kFarIpv6 = "2001:db8::1";
constexpr int kAnyPort = 9;

// As text, if others can use it: no loopback, nothing unset, nothing that only one link knows.
std::string usable(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, address, sizeof(ipv4));
    const std::uint32_t number = ntohl(ipv4.sin_addr.s_addr);
    const bool is_local = number == INADDR_ANY || number >> 24U == IN_LOOPBACKNET;
    if (is_local) return {};
    if (::inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text)) == nullptr) return {};
  } else {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, address, sizeof(ipv6));
    const bool is_local = IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr) ||
                          IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr) ||
                          IN6_IS_ADDR_LINKLOCAL(&ipv6.sin6_addr);
    if (is_local) return {};
    if (::inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text)) == nullptr) return {};
  }
  return text;
}

// Connecting a datagram socket sends nothing, but chooses the route and with it our address.
std::string address_of_route(int family) {
  const auto far = ask_system(family == AF_INET ? kFarIpv4 : kFarIpv6, kAnyPort);
  const Descriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!far || socket.get() < 0) return {};
  sockaddr_storage storage{};
  auto* const own = reinterpret_cast<sockaddr*>(&storage);
  socklen_t size = sizeof(storage);
  const bool found = ::connect(socket.get(), (*far)->ai_addr, (*far)->ai_addrlen) == 0 &&
                     ::getsockname(socket.get(), own, &size) == 0;
  return found ? usable(own) : std::string();
}

std::string address_of_interface(int family) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const bool serves = each->ifa_addr != nullptr && each->ifa_addr->sa_family == family &&
                        (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!serves) continue;
    if (std::string address = usable(each->ifa_addr); !address.empty()) return address;
  }
  return {};
}

std::string own_address(int family) {
  std::string address = address_of_route(family);
  return address.empty() ? address_of_interface(family) : address;
}

}  // namespace

bool is_wildcard(const std::string& bind) {
  return bind.empty() || bind == "0.0.0.0" || bind == "::";
}

bool is_announceable(const std::string& host) {
  const bool has_colon = host.find(':') != std::string::npos;
  in6_addr unused{};
  if (has_colon && ::inet_pton(AF_INET6, host.c_str(), &unused) != 1) return false;
  const auto read_back = parse_address(speedo_address(host, kAnyPort));
  return !is_wildcard(host) && read_back && read_back->host == host;
}

std::string reachable_address(const std::string& bind) {
  SPEEDO_ASSERT(is_wildcard(bind));
  if (bind == "::") {
    if (std::string address = own_address(AF_INET6); !address.empty()) return address;
  }
  return own_address(AF_INET);
}

std::string speedo_address(const std::string& host, unsigned port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("speedo://[{}]:{}", host, port)
                 : fmt::format("speedo://{}:{}", host, port);
}

}  // namespace speedo
