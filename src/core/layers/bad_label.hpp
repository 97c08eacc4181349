#pragma once

#include <cstdint>
#include <string>

#include <speedo/core/shape.hpp>

namespace speedo {

// What is wrong with a label that is none of `classes`, and what to change.
std::string describe_bad_label(float label, std::int64_t index, std::int64_t classes);

// That `scores` need so many labels and there are others.
std::string describe_label_count(const Shape& scores, std::int64_t needed, std::int64_t found);

}  // namespace speedo
