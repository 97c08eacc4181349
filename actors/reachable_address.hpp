#pragma once

#include <string>

namespace speedo {

// "0.0.0.0", "::" or nothing: an address that means every interface, and tells others nothing.
bool is_wildcard(const std::string& bind);

// An address by which other machines reach what listens on every interface: of the interface that
// the default route uses, else of the first one that is up and no loopback. For "::" an IPv6
// address that is not of one link only, if there is one, else IPv4. Empty if this machine has none.
// Requires: is_wildcard(bind).
std::string reachable_address(const std::string& bind);

// Whether workers understand what speedo_address() makes of it: a name or an address and nothing
// beside it, which does not stand for every interface.
bool is_announceable(const std::string& host);

// "speedo://HOST:PORT", an IPv6 address in brackets.
std::string speedo_address(const std::string& host, unsigned port);

}  // namespace speedo
