#pragma once

#include <span>
#include <string>

namespace speedo {

// " (did you mean 'conv1'?)" if one of the names is close to the wrong one, else nothing.
std::string did_you_mean(const std::string& wrong, std::span<const std::string> names);

}  // namespace speedo
