#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>

#include "cli/flags/cluster_flags.hpp"
#include "cli/process_secrets.hpp"
#include "local/private_redis.hpp"

namespace speedo {

// For a master: a private Redis, behind a unix socket that workers of this machine and user reach,
// if no --redis was given (is_named) and nobody is at flags.redis; flags.redis is its address then.
// Null if somebody is there, whatever the answer would be. Forks: call it before the process has
// threads. Errors: kUnavailable if nobody is there and the flags or secrets tell that a Redis of
// the user's own is meant; those of PrivateRedis::start().
Result<std::unique_ptr<PrivateRedis>> find_redis(ClusterFlags& flags, bool is_named,
                                                 const ProcessSecrets& secrets);

// Warns if workers on other machines reach the master, which listens at `bind`, but not the Redis
// at `address` that it tells them.
void warn_of_redis_out_of_reach(const std::string& address, const std::string& bind);

}  // namespace speedo
