#include "tools/log_plot.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

struct LogCurve {
  const char* what;
  LogTable LogTables::*table;
  const char* column;  // of a test: a part of its name
};

constexpr std::array<LogCurve, kLogChartTypes / 2> kLogCurves = {{
    {"Test accuracy", &LogTables::test, "acc"},
    {"Test loss", &LogTables::test, "loss"},
    {"Train learning rate", &LogTables::rates, "LearningRate"},
    {"Train loss", &LogTables::losses, "loss"},
}};

const LogCurve& curve_of(const LogPlotOptions& options) {
  SPEEDO_ASSERT(options.chart_type >= 0 && options.chart_type < kLogChartTypes);
  return kLogCurves[static_cast<std::size_t>(options.chart_type) / 2];
}

bool is_by_seconds(const LogPlotOptions& options) { return options.chart_type % 2 == 1; }

// The columns behind NumIters, Seconds and LearningRate are outputs.
Result<std::string> output_column(const LogTable& tests, const LogPlotOptions& options,
                                  const std::string& name) {
  constexpr std::ptrdiff_t kOutputs = 3;
  const std::string wanted = options.output.empty() ? curve_of(options).column : options.output;
  const auto is_wanted = [&](const std::string& column) {
    return options.output.empty() ? column.find(wanted) != std::string::npos : column == wanted;
  };
  const auto found = std::find_if(tests.columns.begin() + kOutputs, tests.columns.end(), is_wanted);
  if (found != tests.columns.end()) return *found;
  return Error{ErrorCode::kData,
               fmt::format("'{}': no output of the tests is {} '{}'; --output takes one of: {}",
                           name, options.output.empty() ? "named like" : "named", wanted,
                           fmt::join(tests.columns.begin() + kOutputs, tests.columns.end(), ", "))};
}

const double* value_in(const std::vector<std::pair<std::string, double>>& row,
                       std::string_view column) {
  const auto cell =
      std::find_if(row.begin(), row.end(), [&](const auto& each) { return each.first == column; });
  return cell == row.end() ? nullptr : &cell->second;
}

}  // namespace

LineChart log_chart(const LogPlotOptions& options) {
  const LogCurve& curve = curve_of(options);
  const char* by = is_by_seconds(options) ? "Seconds" : "Iters";
  LineChart chart;
  chart.title = fmt::format("{} vs. {}", curve.what, by);
  chart.x_label = by;
  chart.y_label = options.output.empty() ? curve.what : options.output;
  return chart;
}

Result<ChartLine> log_line(const LogTables& tables, const LogPlotOptions& options,
                           const std::string& name) {
  const LogCurve& curve = curve_of(options);
  const LogTable& table = tables.*curve.table;
  if (table.rows.empty()) {
    return Error{ErrorCode::kData, fmt::format("'{}' has no lines to draw '{}' from", name,
                                               log_chart(options).title)};
  }
  std::string column = curve.column;
  if (curve.table == &LogTables::test) {
    SPEEDO_ASSIGN(column, output_column(table, options, name));
  }
  ChartLine line{std::filesystem::path(name).filename().string(), {}};
  for (const auto& row : table.rows) {
    const double* x = value_in(row, is_by_seconds(options) ? "Seconds" : "NumIters");
    const double* y = value_in(row, column);
    if (x != nullptr && y != nullptr) line.points.push_back({*x, *y});
  }
  return line;
}

}  // namespace speedo
