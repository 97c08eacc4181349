#pragma once

#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "store/redis/redis_wire.hpp"

namespace speedo {

// Sends AUTH and waits for the answer; does nothing without credentials.
// hiredis would copy the password into buffers that it frees as they are: here it goes out from
// where it lies, and the answer, which may repeat it, is wiped.
// `where`: the server, for errors. Errors: kRefused, kUnavailable, kTimeout, and what an answer to
// any command can mean (redis_error).
Result<void> authenticate(RedisWire& wire, const RedisCredentials& credentials,
                          const std::string& where, const RedisPatience& patience);

}  // namespace speedo
