#pragma once

#include <chrono>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// A TCP connection to a numeric address and port from `source`, one of this machine's: a blocking
// socket without delay, the caller's to close. Errors, without the address's name: kUnavailable,
// also for a source of another family or one that this machine does not have; kTimeout.
Result<int> connect_from(const std::string& source, const std::string& host, int port,
                         std::chrono::milliseconds timeout);

}  // namespace speedo
