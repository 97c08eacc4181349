#include "base/network_interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

// Bytes of an address, 4 or 16 of them.
std::vector<std::uint8_t> bytes_of(const std::string& address) {
  std::vector<std::uint8_t> bytes(16);
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(4);
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return bytes;
  return {};
}

struct Network {
  std::vector<std::uint8_t> bytes;
  std::size_t bits = 0;  // that an address in it shares

  bool contains(const std::string& address) const {
    const std::vector<std::uint8_t> other = bytes_of(address);
    if (other.size() != bytes.size()) return false;
    for (std::size_t bit = 0; bit < bits; ++bit) {
      const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
      if (((bytes[bit / 8] ^ other[bit / 8]) & mask) != 0) return false;
    }
    return true;
  }
};

std::optional<Network> network_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto bits = parse_number<std::size_t>(std::string_view(text).substr(slash + 1));
  Network network{bytes_of(text.substr(0, slash)), bits.value_or(0)};
  if (!bits || network.bytes.empty() || *bits > 8 * network.bytes.size()) return std::nullopt;
  return network;
}

std::string list_of(std::span<const InterfaceAddress> all) {
  std::string text;
  for (const InterfaceAddress& each : all) {
    text += (text.empty() ? "" : ", ") + each.interface + " " + each.address;
  }
  return text.empty() ? "this machine has none that is up" : "there are " + text;
}

std::optional<InterfaceAddress> address_of(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::array<char, NI_MAXHOST> text{};
  const int failed = getnameinfo(entry.ifa_addr, size, text.data(), text.size(), nullptr, 0,
                                 NI_NUMERICHOST);
  if (failed != 0) return std::nullopt;
  const std::string address = text.data();
  // Of a link alone, with its name behind it.
  if (address.find('%') != std::string::npos) return std::nullopt;
  return InterfaceAddress{entry.ifa_name, address, family == AF_INET6};
}

}  // namespace

Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return Error{ErrorCode::kUnavailable,
                 std::string("the network interfaces cannot be listed: ") + std::strerror(errno)};
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> entries(first, freeifaddrs);
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (const auto address = address_of(*entry)) all.push_back(*address);
  }
  std::ranges::stable_sort(all, {}, &InterfaceAddress::is_ipv6);
  return all;
}

Result<std::string> choose_address(const std::string& wanted,
                                   std::span<const InterfaceAddress> all) {
  if (wanted.find('/') == std::string::npos) {
    const auto found = std::ranges::find(all, wanted, &InterfaceAddress::interface);
    if (found != all.end()) return found->address;
    return usage_error("--iface " + wanted + ": no such network interface with an address; " +
                       list_of(all));
  }
  const std::optional<Network> network = network_of(wanted);
  if (!network) {
    return usage_error("--iface " + wanted + ": give the name of a network interface, or a network "
                       "as 10.1.0.0/16; " + list_of(all));
  }
  std::vector<InterfaceAddress> inside;
  for (const InterfaceAddress& each : all) {
    if (network->contains(each.address)) inside.push_back(each);
  }
  if (inside.size() == 1) return inside.front().address;
  if (inside.empty()) {
    return usage_error("--iface " + wanted + ": this machine has no address in it; " +
                       list_of(all));
  }
  return usage_error("--iface " + wanted + ": this machine has several addresses in it; " +
                     list_of(inside) + ": give a smaller network");
}

}  // namespace speedo
