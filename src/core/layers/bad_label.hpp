#pragma once

#include <cstdint>
#include <string>

#include <speedo/core/shape.hpp>

namespace speedo {

// Whether a layer has the option ignore_label.
enum class LabelsIgnored { kByOption, kNever };

// What is wrong with a label that is none of `classes`, and what to change.
std::string describe_bad_label(float label, std::int64_t index, std::int64_t classes,
                               LabelsIgnored ignored = LabelsIgnored::kByOption);

// That `scores` need so many labels and there are others.
std::string describe_label_count(const Shape& scores, std::int64_t needed, std::int64_t found);

}  // namespace speedo
