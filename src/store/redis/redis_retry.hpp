#pragma once

#include <chrono>
#include <functional>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

namespace speedo {

// Calls `attempt` until it succeeds, fails for good or attempts_max is reached, or fails when
// `has_no_patience` says that it is not to be tried again.
Result<void> with_retries(const RedisOptions& options, const std::function<bool()>& has_no_patience,
                          const std::function<Result<void>()>& attempt);
// The same until opening_attempts_max is reached: of an attempt to open a store.
Result<void> opened_with_retries(const RedisOptions& options,
                                 const std::function<Result<void>()>& attempt);

// How long to wait after so many failures in a row. Requires: one or more.
std::chrono::milliseconds backoff(const RedisOptions& options, int failures);

}  // namespace speedo
