#pragma once

#include <optional>
#include <string>
#include <vector>

namespace speedo {

struct ChartPoint {
  double x = 0.0, y = 0.0;
};

struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;
};

struct ChartRange {
  double min = 0.0, max = 1.0;
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines;
  std::optional<ChartRange> x_range, y_range;  // nothing: what the points span
  bool has_diagonal = false;                   // a thin line from corner to corner
};

// The chart as a picture of one SVG element, with its legend, for files and pages. A line keeps its
// highest and lowest points where it has more than the picture has columns. Points that are not
// finite, or beyond 1e150, are gaps.
std::string to_svg(const LineChart& chart);

}  // namespace speedo
