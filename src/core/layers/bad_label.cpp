#include "core/layers/bad_label.hpp"

#include <fmt/format.h>

namespace speedo {

std::string describe_bad_label(float label, std::int64_t index, std::int64_t classes,
                               LabelsIgnored ignored) {
  std::string text =
      fmt::format("label {} at index {} is outside 0..{}: ", label, index, classes - 1);
  // Beyond this a float does not hold every whole number, and no net has so many classes.
  constexpr float kLabelMax = 16777216.0F;
  if (label >= static_cast<float>(classes) && label <= kLabelMax) {
    text += fmt::format("set num_output of the layer that makes the scores to {} at least, or ",
                        static_cast<std::int64_t>(label) + 1);
  }
  text += "correct the labels";
  return ignored == LabelsIgnored::kNever ? text
                                          : text + " (those to be passed over: ignore_label)";
}

std::string describe_label_count(const Shape& scores, std::int64_t needed, std::int64_t found) {
  return fmt::format("scores of shape {} need {} labels, the label bottom has {}",
                     to_string(scores), needed, found);
}

}  // namespace speedo
