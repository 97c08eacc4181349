#pragma once

#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "local/private_redis.hpp"

namespace speedo {

// A password that nobody has had before.
Secret drawn_password();

// A redis-server at this address of the machine, on a free port, which the workers of other
// machines reach with the password. Settings and password lie in `folder`, in files that only this
// user reads. Errors: kUnavailable for an address that is not the machine's, kCannotWrite.
Result<RedisPlace> shared_redis(const std::filesystem::path& folder, const std::string& address,
                                const Secret& password);

// One that is there already, with the password, if there is one, in a file of `folder` as above.
// Error: kCannotWrite.
Result<RedisPlace> other_redis(const std::filesystem::path& folder, const std::string& uri,
                               const RedisCredentials& credentials);

}  // namespace speedo
