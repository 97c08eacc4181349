#pragma once

#include <cstdint>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// "HOST:PORT", "[::1]:PORT", ":PORT" or "PORT" (of this machine's own, 127.0.0.1). HOST: an IP
// address or a name, and nothing besides, as the server that listens there reads a list.
// Port 0: any free one. Error: kUsage, naming the forms.
struct HttpAddress {
  std::string host;
  std::uint16_t port = 0;
};
Result<HttpAddress> parse_http_address(const std::string& text);

}  // namespace speedo
