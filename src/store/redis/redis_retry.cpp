#include "store/redis/redis_retry.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "base/log.hpp"

namespace speedo {

namespace {

Result<void> tried(const RedisOptions& options, int attempts_max,
                   const std::function<bool()>& has_no_patience,
                   const std::function<Result<void>()>& attempt) {
  for (int tries = 1;; ++tries) {
    auto done = attempt();
    if (done || !is_transient(done.error().code)) return done;
    const bool was_last = tries >= attempts_max || has_no_patience();
    if (was_last && tries == 1) return done;
    if (was_last) {
      return Error{done.error().code,
                   done.error().message + " (" + std::to_string(tries) + " attempts)"};
    }
    if (tries == 1) SPEEDO_WARN("{}; trying again", done.error().message);
    std::this_thread::sleep_for(backoff(options, tries));
  }
}

}  // namespace

Result<void> with_retries(const RedisOptions& options, const std::function<bool()>& has_no_patience,
                          const std::function<Result<void>()>& attempt) {
  return tried(options, options.attempts_max, has_no_patience, attempt);
}

Result<void> opened_with_retries(const RedisOptions& options,
                                 const std::function<Result<void>()>& attempt) {
  const int given = options.opening_attempts_max;
  return tried(
      options, given == 0 ? options.attempts_max : given, [] { return false; }, attempt);
}

std::chrono::milliseconds backoff(const RedisOptions& options, int failures) {
  auto pause = options.backoff_first;
  for (int i = 1; i < failures && pause < options.backoff_max; ++i) {
    pause = std::min(2 * pause, options.backoff_max);
  }
  return pause;
}

}  // namespace speedo
