#pragma once

#include <string>
#include <string_view>

namespace speedo {

// The value in a line "NAME:VALUE" of an answer to INFO or CLUSTER INFO; empty if there is none.
std::string info_value(std::string_view info, std::string_view name);

}  // namespace speedo
