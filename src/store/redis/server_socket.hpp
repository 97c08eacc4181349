#pragma once

#include <chrono>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// Connected sockets, which do not block; the caller closes them. Errors: kUnavailable, kTimeout.

// A TCP connection to `host` and `port` from the address `source`, both in numbers; no source: from
// the one that the system chooses. The system finds out when the other side has gone.
Result<int> connect_tcp(const std::string& source, const std::string& host, int port,
                        std::chrono::milliseconds timeout);

// To the unix socket at a path.
Result<int> connect_unix(const std::string& path, std::chrono::milliseconds timeout);

}  // namespace speedo
