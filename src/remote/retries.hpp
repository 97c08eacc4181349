#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <speedo/base/result.hpp>

#include "remote/remote_terms.hpp"

namespace speedo {

// Decides whether a request is made again after a failure, and after what time.
class Retries {
 public:
  // For a request of so many bytes.
  explicit Retries(const RemoteTerms& terms, std::uint64_t bytes = 0);

  // After an attempt that failed when it had brought `bytes`; `asked`: what the server asks for.
  // Nothing: give up.
  std::optional<std::chrono::milliseconds> after(const Error& error, std::uint64_t bytes,
                                                 std::chrono::milliseconds asked = {});

 private:
  const RemoteTerms& terms_;
  const std::uint64_t progress_bytes_;
  int failures_ = 0;         // in a row, that brought nothing on
  int broken_promises_ = 0;  // in all
};

}  // namespace speedo
