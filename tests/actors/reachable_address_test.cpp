#include "actors/reachable_address.hpp"

#include <set>
#include <string>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "support/catch.hpp"

#include "actors/node.hpp"

namespace speedo {
namespace {

// Every address of this machine, as text.
std::set<std::string> addresses_of_machine() {
  std::set<std::string> all;
  ifaddrs* first = nullptr;
  REQUIRE(::getifaddrs(&first) == 0);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    char text[INET6_ADDRSTRLEN] = {};
    if (each->ifa_addr == nullptr) continue;
    const int family = each->ifa_addr->sa_family;
    if (family == AF_INET) {
      ::inet_ntop(family, &reinterpret_cast<sockaddr_in*>(each->ifa_addr)->sin_addr, text,
                  sizeof(text));
    } else if (family == AF_INET6) {
      ::inet_ntop(family, &reinterpret_cast<sockaddr_in6*>(each->ifa_addr)->sin6_addr, text,
                  sizeof(text));
    }
    all.insert(text);
  }
  ::freeifaddrs(first);
  return all;
}

bool is_local(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("fe80:");
}

}  // namespace

TEST_CASE("what stands for every interface is told from an address") {
  for (const char* wildcard : {"", "0.0.0.0", "::"}) CHECK(is_wildcard(wildcard));
  for (const char* address : {"127.0.0.1", "10.0.0.1", "::1", "node-7"}) {
    CHECK_FALSE(is_wildcard(address));
  }
}

TEST_CASE("the address announced for every interface is the machine's, and no loopback") {
  const std::set<std::string> own = addresses_of_machine();
  bool has_ipv4 = false;
  for (const std::string& address : own) {
    has_ipv4 = has_ipv4 || (!address.empty() && address.find(':') == std::string::npos &&
                            !is_local(address));
  }
  for (const char* wildcard : {"0.0.0.0", "::"}) {
    const std::string found = reachable_address(wildcard);
    CAPTURE(wildcard, found);
    if (has_ipv4) CHECK_FALSE(found.empty());
    if (found.empty()) continue;
    CHECK(own.count(found) == 1);
    CHECK_FALSE(is_local(found));
  }
  const std::string ipv4 = reachable_address("0.0.0.0");
  CHECK(ipv4.find(':') == std::string::npos);
}

TEST_CASE("an announced address is one that workers understand, IPv6 in brackets") {
  for (const char* host : {"10.0.0.1", "node-7", "::1", "2001:db8::7"}) {
    const auto address = parse_address(speedo_address(host, 4000));
    REQUIRE(address);
    CHECK(address->host == host);
    CHECK(address->port == 4000);
  }
  CHECK(speedo_address("::1", 5) == "speedo://[::1]:5");
}

}  // namespace speedo
