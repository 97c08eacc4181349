#pragma once

#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// An address of one of this machine's network interfaces that is up.
struct InterfaceAddress {
  std::string interface;  // "eth1"
  std::string address;    // numeric
  bool is_ipv6 = false;
  bool operator==(const InterfaceAddress&) const = default;
};

// IPv4 first; without the link-local ones of IPv6. Error: kUnavailable.
Result<std::vector<InterfaceAddress>> interface_addresses();

// The address that `wanted` means: an interface by its name, its IPv4 address if it has one; or
// a network, as "10.1.0.0/16" or "fd00::/8", the one address in it. Error: kUsage, which lists what
// there is, for an interface that there is not or that has no address, and for a network that no
// address, or several, lie in.
Result<std::string> choose_address(const std::string& wanted,
                                   std::span<const InterfaceAddress> all);

}  // namespace speedo
