#pragma once

#include <cstdint>
#include <string>

namespace speedo {

// What is wrong with a label that is none of `classes`, and what to change.
std::string describe_bad_label(float label, std::int64_t index, std::int64_t classes);

}  // namespace speedo
