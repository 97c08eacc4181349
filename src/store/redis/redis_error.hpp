#pragma once

#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// An error reply ("WRONGPASS invalid ...", without the '-') of the server at `where`, with its kind
// and remedy. Transient kinds are those that a server leaves by itself or by a failover.
Error redis_error(std::string_view reply, const std::string& where);

}  // namespace speedo
