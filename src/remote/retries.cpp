#include "remote/retries.hpp"

#include <algorithm>

namespace speedo {

namespace {

// A small file may come in as many attempts as a large one.
constexpr std::uint64_t kAttemptsThatBringOn = 64;

}  // namespace

Retries::Retries(const RemoteTerms& terms, std::uint64_t bytes)
    : terms_(terms),
      progress_bytes_(std::clamp<std::uint64_t>(
          bytes / kAttemptsThatBringOn, 1, std::max<std::uint64_t>(terms.progress_bytes, 1))) {}

std::optional<std::chrono::milliseconds> Retries::after(const Error& error, std::uint64_t bytes,
                                                        std::chrono::milliseconds asked) {
  if (error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kMismatch) {
    if (++broken_promises_ >= terms_.broken_promises_max) return std::nullopt;
  } else if (!is_transient(error.code)) {
    return std::nullopt;
  }
  if (bytes >= progress_bytes_) failures_ = 0;
  if (++failures_ >= terms_.attempts_max) return std::nullopt;
  auto wait = terms_.backoff_first;
  for (int doubled = 1; doubled < failures_ && wait < terms_.backoff_max; ++doubled) wait *= 2;
  return std::max(std::min(wait, terms_.backoff_max), std::min(asked, terms_.retry_after_max));
}

}  // namespace speedo
