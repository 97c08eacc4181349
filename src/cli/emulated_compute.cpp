#include "cli/emulated_compute.hpp"

#include <chrono>
#include <optional>
#include <string_view>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

constexpr double kStepMillisecondsMax = 3600e3;
constexpr double kSpreadPercentMax = 100.0;

// Not a number is in no range.
std::optional<double> number_within(std::string_view text, double most) {
  const auto number = parse_number<double>(text);
  if (!number || !(*number >= 0.0 && *number <= most)) return std::nullopt;
  return number;
}

}  // namespace

Result<EmulatedCompute> parse_emulated_compute(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto step = number_within(text.substr(0, colon), kStepMillisecondsMax);
  const auto spread = colon == std::string::npos
                          ? std::optional(0.0)
                          : number_within(text.substr(colon + 1), kSpreadPercentMax);
  if (!step || !spread) {
    return usage_error("--emulate-compute " + text +
                       ": give MS or MS:SPREAD, the milliseconds of a step, from 0 to 3600000, and "
                       "by how many percent steps differ at most, from 0 to 100, as in 25.5:10");
  }
  return EmulatedCompute{
      .step = std::chrono::duration_cast<Instant>(std::chrono::duration<double, std::milli>(*step)),
      .spread = *spread / 100.0};
}

}  // namespace speedo
