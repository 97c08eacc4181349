#include "store/redis/redis_retry.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "base/log.hpp"

namespace speedo {

Result<void> with_retries(const RedisOptions& options,
                          const std::function<Result<void>()>& attempt) {
  for (int tries = 1;; ++tries) {
    auto done = attempt();
    if (done || !is_transient(done.error().code)) return done;
    if (tries >= options.attempts_max) {
      return Error{done.error().code,
                   done.error().message + " (" + std::to_string(tries) + " attempts)"};
    }
    if (tries == 1) SPEEDO_WARN("{}; trying again", done.error().message);
    std::this_thread::sleep_for(backoff(options, tries));
  }
}

std::chrono::milliseconds backoff(const RedisOptions& options, int failures) {
  auto pause = options.backoff_first;
  for (int i = 1; i < failures && pause < options.backoff_max; ++i) {
    pause = std::min(2 * pause, options.backoff_max);
  }
  return pause;
}

}  // namespace speedo
