#include "measure/simulate/simulate_plan_chart.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/report/svg.hpp"

namespace speedo {

namespace {

constexpr double kWidth = 760.0, kHeight = 460.0;
constexpr double kLeft = 64.0, kRight = 200.0, kTop = 64.0, kBottom = 56.0;
constexpr double kLegendStep = 20.0;

struct Point {
  double workers, speed_up;
};
struct Line {
  std::string name;
  std::vector<Point> points;
};

std::vector<Line> lines_of(const PlanReport& report) {
  std::vector<Line> lines;
  for (const PlanRow& row : report.rows) {
    if (lines.empty() || lines.back().name != row.schedule) lines.push_back({row.schedule, {}});
    if (!report.baseline) {
      lines.back().points.push_back({static_cast<double>(row.workers), row.result.speed_up});
    } else if (row.speed_up_to_loss) {
      lines.back().points.push_back({static_cast<double>(row.workers), *row.speed_up_to_loss});
    }
  }
  return lines;
}

class Chart {
 public:
  explicit Chart(const PlanReport& report) : report_(report), lines_(lines_of(report)) {
    for (const PlanRow& row : report.rows) {
      workers_.push_back(static_cast<double>(row.workers));
      x_max_ = std::max(x_max_, workers_.back());
    }
    std::sort(workers_.begin(), workers_.end());
    workers_.erase(std::unique(workers_.begin(), workers_.end()), workers_.end());
    double highest = 1.0;
    for (const Line& line : lines_) {
      for (const Point& point : line.points) highest = std::max(highest, point.speed_up);
    }
    y_step_ = axis_step(highest * 1.05, 6.0);
    y_max_ = std::ceil(highest * 1.05 / y_step_) * y_step_;
    // A legend of many schedules makes the picture higher, not the letters smaller.
    height_ = std::max(kHeight, kTop + kBottom +
                                    kLegendStep * (static_cast<double>(lines_.size()) + 2.0));
  }

  std::string draw() {
    head();
    axes();
    ideal();
    for (std::size_t i = 0; i < lines_.size(); ++i) line(i);
    legend();
    return svg_ + "</svg>\n";
  }

 private:
  double x(double workers) const {
    const double part = x_max_ > 1.0 ? (workers - 1.0) / (x_max_ - 1.0) : 0.5;
    return kLeft + 16.0 + part * (kWidth - kLeft - kRight - 32.0);
  }
  double y(double speed_up) const {
    return height_ - kBottom - speed_up / y_max_ * (height_ - kTop - kBottom);
  }
  double right() const { return kWidth - kRight; }

  void text(double at_x, double at_y, const char* classes, const std::string& words) {
    svg_ += svg_text(at_x, at_y, classes, words);
  }

  void rule(double x1, double y1, double x2, double y2, const char* classes) {
    svg_ += svg_rule(x1, y1, x2, y2, classes);
  }

  void head() {
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
        "font-family=\"system-ui, sans-serif\" font-size=\"13\">\n"
        "<title>{2}</title>\n"
        "<style>\n"
        ".page {{ fill: #ffffff; }} .ink {{ fill: #1c2024; }} .soft {{ fill: #5c646c; }}\n"
        ".axis {{ stroke: #5c646c; }} .grid {{ stroke: #e3e6e9; }}\n"
        ".ideal {{ stroke: #9aa2aa; stroke-dasharray: 3 4; fill: none; }}\n"
        ".line {{ fill: none; stroke-width: 2.2; stroke-linejoin: round; }}\n"
        ".head {{ font-size: 16px; font-weight: 600; }}\n"
        ".mid {{ text-anchor: middle; }} .end {{ text-anchor: end; }}\n"
        "@media (prefers-color-scheme: dark) {{\n"
        ".page {{ fill: #16191d; }} .ink {{ fill: #e8ebee; }} .soft {{ fill: #a3abb3; }}\n"
        ".axis {{ stroke: #a3abb3; }} .grid {{ stroke: #2c3238; }}\n"
        ".ideal {{ stroke: #6b737b; }} }}\n"
        "</style>\n"
        "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        kWidth, height_, markup_escaped(title()));
    text(kLeft, 28.0, "ink head", title());
    text(kLeft, 48.0, "soft",
         report_.baseline ? fmt::format("time to loss {:.4g}, against one worker without a cluster",
                                        report_.baseline->loss)
                          : "images a second, against one worker without a cluster");
  }

  std::string title() const {
    return report_.cluster.title.empty() ? "Speed-up by workers" : report_.cluster.title;
  }

  void axes() {
    for (double value = 0.0; value <= y_max_ + y_step_ / 2.0; value += y_step_) {
      rule(kLeft, y(value), right(), y(value), value == 0.0 ? "axis" : "grid");
      text(kLeft - 10.0, y(value) + 4.5, "soft end", fmt::format("{:g}", value));
    }
    rule(kLeft, y(0.0), kLeft, y(y_max_), "axis");
    double last = -1e9;
    for (const double workers : workers_) {
      if (x(workers) - last < 26.0) continue;
      last = x(workers);
      rule(last, y(0.0), last, y(0.0) + 5.0, "axis");
      text(last, y(0.0) + 20.0, "soft mid", fmt::format("{:g}", workers));
    }
    text((kLeft + right()) / 2.0, height_ - 14.0, "ink mid", "workers");
    svg_ += fmt::format(
        "<text class=\"ink mid\" transform=\"translate(18 {:.1f}) rotate(-90)\">speed-up</text>\n",
        (y(0.0) + y(y_max_)) / 2.0);
  }

  // As fast as there are workers, as far as the picture goes.
  void ideal() {
    const double end = std::min(x_max_, y_max_);
    if (end > 1.0) rule(x(1.0), y(1.0), x(end), y(end), "ideal");
  }

  // Circle, square, diamond, triangle in turn, for those who do not tell the colours apart.
  void marker(std::size_t index, double at_x, double at_y) {
    const std::string fill =
        fmt::format("fill=\"{}\"", kChartColours[index % kChartColours.size()]);
    switch (index % 4) {
      case 0:
        svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" {}/>\n", at_x, at_y, fill);
        return;
      case 1:
        svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"7\" height=\"7\" {}/>\n",
                            at_x - 3.5, at_y - 3.5, fill);
        return;
      case 2:
        svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}l5 5l-5 5l-5 -5z\" {}/>\n", at_x, at_y - 5.0,
                            fill);
        return;
      default:
        svg_ += fmt::format("<path d=\"M{:.1f} {:.1f}l5 8h-10z\" {}/>\n", at_x, at_y - 5.0, fill);
    }
  }

  void line(std::size_t index) {
    const std::vector<Point>& points = lines_[index].points;
    if (points.empty()) return;
    std::string path;
    for (const Point& point : points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point.workers),
                          y(point.speed_up));
    }
    svg_ += fmt::format("<path class=\"line\" d=\"{}\" {}/>\n", path, chart_stroke(index));
    for (const Point& point : points) marker(index, x(point.workers), y(point.speed_up));
  }

  // In the order of the lines' ends, so that the eye finds them.
  void legend() {
    std::vector<std::size_t> order(lines_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto end_of = [&](std::size_t i) {
      return lines_[i].points.empty() ? -1.0 : lines_[i].points.back().speed_up;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return end_of(a) > end_of(b); });
    const double left = right() + 20.0;
    double top = kTop + 8.0;
    rule(left, top, left + 26.0, top, "ideal");
    text(left + 36.0, top + 4.5, "soft", "linear");
    for (const std::size_t index : order) {
      top += kLegendStep;
      svg_ += fmt::format("<path class=\"line\" d=\"M{:.1f} {:.1f}h26\" {}/>\n", left, top,
                          chart_stroke(index));
      marker(index, left + 13.0, top);
      const std::vector<Point>& points = lines_[index].points;
      const std::string value =
          points.empty() ? ", not reached" : fmt::format("  {:.2f}", points.back().speed_up);
      text(left + 36.0, top + 4.5, "ink", lines_[index].name + value);
    }
  }

  const PlanReport& report_;
  const std::vector<Line> lines_;
  std::vector<double> workers_;
  double x_max_ = 1.0, y_max_ = 1.0, y_step_ = 1.0, height_ = kHeight;
  std::string svg_;
};

}  // namespace

std::string to_svg(const PlanReport& report) { return Chart(report).draw(); }

}  // namespace speedo
