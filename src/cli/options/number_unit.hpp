#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace speedo {

// What a number may be written with, as "MB".
struct NumberUnit {
  std::string_view name;
  double factor;
};

// Takes the unit that `text` ends with off it, and returns its factor; nothing if it has none of
// them. Requires: no unit is the end of another one.
inline std::optional<double> take_unit(std::string_view& text, std::span<const NumberUnit> units) {
  for (const NumberUnit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    text.remove_suffix(unit.name.size());
    return unit.factor;
  }
  return std::nullopt;
}

}  // namespace speedo
