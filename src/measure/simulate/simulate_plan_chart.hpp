#pragma once

#include <string>

#include "measure/simulate/simulate_plan_report.hpp"

namespace speedo {

// Speed-up against workers, a line a schedule, as an SVG document that suits light and dark pages.
// After --train it is the speed-up to the same loss, else that of images a second.
// Requires: the report has rows.
std::string to_svg(const PlanReport& report);

}  // namespace speedo
