#pragma once

#include <string>

#include <speedo/base/result.hpp>

#include "cli/report/line_chart.hpp"
#include "tools/log_tables.hpp"

namespace speedo {

// The charts of Caffe's plot_training_log.py, by its numbers: test accuracy (0, 1), test loss (2,
// 3), learning rate (4, 5) and training loss (6, 7); even ones by iterations, odd ones by seconds.
inline constexpr int kLogChartTypes = 8;

struct LogPlotOptions {
  int chart_type = 0;  // below kLogChartTypes
  std::string output;  // of the net, for tests; empty: the first that is named after what is drawn
};

// A chart without lines.
LineChart log_chart(const LogPlotOptions& options);

// What the log of that name, as read, gives for the chart. Error: kData, naming what the log has
// instead.
Result<ChartLine> log_line(const LogTables& tables, const LogPlotOptions& options,
                           const std::string& name);

}  // namespace speedo
