#pragma once

#include <string>

namespace speedo {

// As the system's calls take it: without the brackets that an IPv6 address has before a port.
inline std::string bare_host(const std::string& host) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (!bracketed || host.find(':') == std::string::npos) return host;
  return host.substr(1, host.size() - 2);
}

}  // namespace speedo
