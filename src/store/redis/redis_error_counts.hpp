#pragma once

#include <speedo/base/result.hpp>

namespace speedo {

// An attempt failed so; see redis_error_counts(). Any thread.
void count_redis_error(ErrorCode code);

}  // namespace speedo
