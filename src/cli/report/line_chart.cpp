#include "cli/report/line_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "cli/report/svg.hpp"

namespace speedo {

namespace {

constexpr double kPictureWidth = 760.0, kPlotHeight = 340.0;
constexpr double kPlotLeft = 84.0, kPlotRight = 24.0, kPlotTop = 44.0, kBelowPlot = 52.0;
constexpr double kLegendRow = 20.0, kLetterWidth = 7.4;
constexpr double kParts = 7.0;          // of an axis, at most
constexpr std::size_t kMarkedMax = 40;  // points of a line that has a mark at each

// Numbers whose differences are finite, too.
bool is_finite(const ChartPoint& point) {
  constexpr double kDrawnMax = 1e150;
  return std::abs(point.x) < kDrawnMax && std::abs(point.y) < kDrawnMax;
}

// As an axis of whole steps: from the last one below `range` to the first one above.
struct Axis {
  explicit Axis(ChartRange range, bool is_given) {
    constexpr double kExtentMin = kParts * kAxisStepMin;
    double extent = range.max - range.min;
    if (!(extent > kExtentMin)) {
      extent = std::max(std::abs(range.max), 1.0);
      range = {range.min - extent / 2.0, range.max + extent / 2.0};
    }
    step = axis_step(extent, kParts);
    min = is_given ? range.min : std::floor(range.min / step + 1e-9) * step;
    max = is_given ? range.max : std::ceil(range.max / step - 1e-9) * step;
  }

  double part(double value) const { return (value - min) / (max - min); }
  std::vector<double> ticks() const {
    std::vector<double> all;
    const auto first = static_cast<long>(std::ceil(min / step - 1e-9));
    const auto last = static_cast<long>(std::floor(max / step + 1e-9));
    for (long i = first; i <= last; ++i) all.push_back(static_cast<double>(i) * step);
    return all;
  }

  double min = 0.0, max = 1.0, step = 1.0;
};

ChartRange range_of(const std::vector<ChartLine>& lines, double ChartPoint::*coordinate) {
  ChartRange range{std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
  for (const ChartLine& line : lines) {
    for (const ChartPoint& point : line.points) {
      if (!is_finite(point)) continue;
      range.min = std::min(range.min, point.*coordinate);
      range.max = std::max(range.max, point.*coordinate);
    }
  }
  return range.min <= range.max ? range : ChartRange{};
}

class LinePicture {
 public:
  explicit LinePicture(const LineChart& chart)
      : chart_(chart),
        x_(chart.x_range.value_or(range_of(chart.lines, &ChartPoint::x)),
           chart.x_range.has_value()),
        y_(chart.y_range.value_or(range_of(chart.lines, &ChartPoint::y)),
           chart.y_range.has_value()) {}

  std::string draw() {
    place_legend();
    head();
    axes();
    if (chart_.has_diagonal) rule(x(x_.min), y(y_.min), x(x_.max), y(y_.max), "diagonal");
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw_line(i);
    legend();
    return svg_ + "</svg>\n";
  }

 private:
  struct LegendEntry {
    double left = 0.0, row = 0.0;
  };

  static double right() { return kPictureWidth - kPlotRight; }
  static double bottom() { return kPlotTop + kPlotHeight; }
  double x(double value) const { return kPlotLeft + x_.part(value) * (right() - kPlotLeft); }
  double y(double value) const { return bottom() - y_.part(value) * kPlotHeight; }

  void place_legend() {
    double left = kPlotLeft, row = 0.0;
    for (const ChartLine& line : chart_.lines) {
      const double width = 52.0 + kLetterWidth * static_cast<double>(line.name.size());
      if (left > kPlotLeft && left + width > right()) {
        left = kPlotLeft;
        row += 1.0;
      }
      entries_.push_back({left, row});
      left += width;
    }
    height_ = bottom() + kBelowPlot + (entries_.empty() ? 0.0 : (row + 1.0) * kLegendRow + 8.0);
  }

  void text(double at_x, double at_y, const char* classes, const std::string& words) {
    svg_ += svg_text(at_x, at_y, classes, words);
  }

  void rule(double x1, double y1, double x2, double y2, const char* classes) {
    svg_ += svg_rule(x1, y1, x2, y2, classes);
  }

  void head() {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" font-family=\"sans-serif\" "
        "font-size=\"13\">\n<title>{2}</title>\n"
        "<style>\n"
        ".page {{ fill: #ffffff; }} .ink {{ fill: #1c2024; }} .soft {{ fill: #5c646c; }}\n"
        ".axis {{ stroke: #5c646c; }} .grid {{ stroke: #e3e6e9; }}\n"
        ".diagonal {{ stroke: #9aa2aa; stroke-dasharray: 3 4; }}\n"
        ".curve {{ fill: none; stroke-width: 1.8; stroke-linejoin: round; }}\n"
        ".head {{ font-size: 16px; font-weight: 600; }}\n"
        ".mid {{ text-anchor: middle; }} .end {{ text-anchor: end; }}\n"
        "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        kPictureWidth, height_, markup_escaped(chart_.title));
    text(kPlotLeft, 26.0, "ink head", chart_.title);
  }

  void axes() {
    for (const double value : y_.ticks()) {
      rule(kPlotLeft, y(value), right(), y(value), "grid");
      text(kPlotLeft - 8.0, y(value) + 4.5, "soft end", fmt::format("{:g}", value));
    }
    for (const double value : x_.ticks()) {
      rule(x(value), bottom(), x(value), bottom() + 5.0, "axis");
      text(x(value), bottom() + 20.0, "soft mid", fmt::format("{:.10g}", value));
    }
    rule(kPlotLeft, kPlotTop, kPlotLeft, bottom(), "axis");
    rule(kPlotLeft, bottom(), right(), bottom(), "axis");
    text((kPlotLeft + right()) / 2.0, bottom() + 42.0, "ink mid", chart_.x_label);
    svg_ += fmt::format(
        "<text class=\"ink mid\" transform=\"translate(18 {:.1f}) rotate(-90)\">{}</text>\n",
        (kPlotTop + bottom()) / 2.0, markup_escaped(chart_.y_label));
  }

  // Of each run of points in one column of the picture: the first, the extremes, and the last.
  std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points) const {
    std::vector<ChartPoint> kept;
    for (std::size_t begin = 0; begin < points.size();) {
      if (!is_finite(points[begin])) {
        kept.push_back(points[begin++]);
        continue;
      }
      const double column = std::floor(x(points[begin].x));
      std::size_t end = begin + 1, lowest = begin, highest = begin;
      for (;
           end < points.size() && is_finite(points[end]) && std::floor(x(points[end].x)) == column;
           ++end) {
        if (points[end].y < points[lowest].y) lowest = end;
        if (points[end].y > points[highest].y) highest = end;
      }
      std::vector<std::size_t> places = {begin, lowest, highest, end - 1};
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      for (const std::size_t place : places) kept.push_back(points[place]);
      begin = end;
    }
    return kept;
  }

  void draw_line(std::size_t index) {
    const std::vector<ChartPoint> points = thinned(chart_.lines[index].points);
    std::string path;
    bool is_gap = true;
    for (const ChartPoint& point : points) {
      if (is_finite(point)) {
        path += fmt::format("{}{:.1f} {:.1f}", is_gap ? "M" : "L", x(point.x), y(point.y));
      }
      is_gap = !is_finite(point);
    }
    if (path.empty()) return;
    svg_ += fmt::format("<path class=\"curve\" d=\"{}\" {}/>\n", path, chart_stroke(index));
    if (points.size() > kMarkedMax) return;
    for (const ChartPoint& point : points) {
      if (!is_finite(point)) continue;
      svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x(point.x),
                          y(point.y), kChartColours[index % kChartColours.size()]);
    }
  }

  void legend() {
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) {
      const double top = bottom() + kBelowPlot + entries_[i].row * kLegendRow + 8.0;
      svg_ += fmt::format("<path class=\"curve\" d=\"M{:.1f} {:.1f}h26\" {}/>\n", entries_[i].left,
                          top, chart_stroke(i));
      text(entries_[i].left + 34.0, top + 4.5, "ink", chart_.lines[i].name);
    }
  }

  const LineChart& chart_;
  const Axis x_, y_;
  std::vector<LegendEntry> entries_;
  double height_ = 0.0;
  std::string svg_;
};

}  // namespace

std::string to_svg(const LineChart& chart) { return LinePicture(chart).draw(); }

}  // namespace speedo
