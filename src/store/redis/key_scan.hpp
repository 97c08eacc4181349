#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>

#include "store/redis/redis_session.hpp"

namespace speedo {

// The keys of a server that begin with `prefix`, some perhaps twice, by SCAN, which does not hold
// the server up.
Result<std::vector<std::string>> scan_keys(RedisSession& session, std::string_view prefix);

}  // namespace speedo
