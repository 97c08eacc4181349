#include "tools/log_plot.hpp"

#include <limits>

#include "cli/report/line_chart.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

// Displays of iterations 0, 5, ..., tests at 0 and 10.
std::string training_log() {
  std::string log = "I20260228 10:00:00.000000 7 solver.cpp:1] Solving net\n";
  for (int i = 0; i <= 10; i += 5) {
    const std::string date =
        "I20260228 10:00:0" + std::to_string(i / 5) + ".500000 7 solver.cpp:1] ";
    const std::string iteration = date + "Iteration " + std::to_string(i);
    if (i % 10 == 0) {
      log += iteration + ", Testing net (#0)\n";
      log += date + "    Test net output #0: acc/top5 = 0." + std::to_string(i) + "5\n";
      log += date + "    Test net output #1: my_loss = " + std::to_string(20 - i) + "\n";
    }
    log += iteration + " (5 iter/s, 1s/5 iters), loss = " + std::to_string(12 - i) + "\n";
    log += date + "    Train net output #0: my_loss = 9 (* 1 = 9 loss)\n";
    log += iteration + ", lr = 0.0" + std::to_string(i + 1) + "\n";
  }
  return log + "I20260228 10:00:03.500000 7 solver.cpp:1] Iteration 15, loss = 1.5\n";
}

LogTables tables() {
  auto read = read_log_tables(training_log(), "a.log", 2026);
  REQUIRE(read);
  return *read;
}

std::vector<std::vector<double>> points(int chart_type, const std::string& output = "") {
  const auto line = log_line(tables(), {.chart_type = chart_type, .output = output}, "x/a.log");
  if (!line) FAIL(line.error().message);
  CHECK(line->name == "a.log");
  std::vector<std::vector<double>> all;
  for (const ChartPoint& point : line->points) all.push_back({point.x, point.y});
  return all;
}

using Points = std::vector<std::vector<double>>;

TEST_CASE("each chart type draws its numbers, by iterations and by seconds") {
  CHECK(points(0) == Points{{0, 0.05}, {10, 0.105}});
  CHECK(points(1) == Points{{0.5, 0.05}, {2.5, 0.105}});
  CHECK(points(2) == Points{{0, 20}, {10, 10}});
  CHECK(points(3) == Points{{0.5, 20}, {2.5, 10}});
  CHECK(points(4) == Points{{0, 0.01}, {5, 0.06}, {10, 0.011}});
  CHECK(points(5) == Points{{0.5, 0.01}, {1.5, 0.06}, {2.5, 0.011}});
  CHECK(points(6) == Points{{0, 12}, {5, 7}, {10, 2}, {15, 1.5}});
  CHECK(points(7) == Points{{0.5, 12}, {1.5, 7}, {2.5, 2}, {3.5, 1.5}});
  CHECK(points(0, "my_loss") == Points{{0, 20}, {10, 10}});
  CHECK(log_chart({5, ""}).title == "Train learning rate vs. Seconds");
}

TEST_CASE("an output that the log lacks is refused with those that it has") {
  const auto line = log_line(tables(), {.chart_type = 0, .output = "top1"}, "a.log");
  REQUIRE_FALSE(line);
  CHECK(line.error().code == ErrorCode::kData);
  CHECK(line.error().message.find("acc/top5, my_loss") != std::string::npos);
  CHECK_FALSE(log_line(LogTables{}, {2, ""}, "a.log"));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("a chart leaves gaps, keeps extremes, and takes any points and names") {
  LineChart chart{"<t>", "x", "y",  {{"a & b", {{0, 1}, {1, 2}, {2, NAN}, {3, 1}, {4, 1e300}}}},
                  {},    {},  false};
  const std::string svg = to_svg(chart);
  CHECK(svg.find("a &amp; b") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
  CHECK(count_of(svg, "<circle") == 3);
  chart.lines[0].points.clear();
  for (int i = 0; i < 100000; ++i) {
    chart.lines[0].points.push_back({static_cast<double>(i), i == 54321 ? 7.0 : 0.5});
  }
  const std::string dense = to_svg(chart);
  CHECK(dense.size() < 100000);
  // The axis ends at the peak, so that it lies at the top of the plot.
  CHECK(count_of(dense, " 44.0L") + count_of(dense, " 44.0\"") >= 1);
  for (const std::vector<ChartPoint>& few :
       {std::vector<ChartPoint>{}, {{1, 1}}, {{0, -3}, {0, -3}}, {{-1e-30, 1e100}},
        {{0, 5e-324}, {1, 0}}, {{0, 1e-60}, {1, 3e-60}}, {{1e-60, 1}, {3e-60, 2}}}) {
    chart.lines[0].points = few;
    const std::string small = to_svg(chart);
    CHECK(small.find("nan") == std::string::npos);
    CHECK(small.find("inf") == std::string::npos);
    CHECK(small.ends_with("</svg>\n"));
  }
}

}  // namespace
}  // namespace speedo
