#include "core/suggest.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/edit_distance.hpp"

namespace speedo {

std::string did_you_mean(const std::string& wrong, std::span<const std::string> names) {
  const std::string* best = nullptr;
  // More than a third of the letters wrong is another name.
  std::size_t best_distance = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    if (distance < best_distance) {
      best = &name;
      best_distance = distance;
    }
  }
  return best == nullptr ? "" : fmt::format(" (did you mean '{}'?)", *best);
}

}  // namespace speedo
