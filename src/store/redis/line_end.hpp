#pragma once

#include <string_view>

namespace speedo {

// Ends every line of Redis' protocol, and every value.
inline constexpr std::string_view kLineEnd = "\r\n";

}  // namespace speedo
