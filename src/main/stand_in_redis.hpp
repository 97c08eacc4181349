#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>

#include "main/private_redis.hpp"

namespace speedo {

// For a master that was told of no Redis: a private one, behind a unix socket that workers of this
// machine and user reach, if nothing answers at `address`; null if something does, whatever it
// says. Forks: call it before the process has threads. Errors: those of PrivateRedis::start().
Result<std::unique_ptr<PrivateRedis>> start_if_none_answers(const std::string& address);

// Warns if workers on other machines reach the master, which listens at `bind`, but not the Redis
// at `address` that it tells them.
void warn_of_redis_out_of_reach(const std::string& address, const std::string& bind);

}  // namespace speedo
