#include <string>
#include <vector>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/kept_inputs.hpp"
#include "cli/report/console.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"
#include "tools/log_plot.hpp"
#include "tools/log_tables.hpp"
#include "tools/picture.hpp"

namespace speedo {

Result<int> plot_log_command(const CommandLine& line) {
  OptionValues values(Program::kPlotLog);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  LogPlotOptions options;
  std::string output;
  std::vector<std::string> logs;
  values.get("chart-type", options.chart_type);
  values.get("picture", output);
  values.get("logs", logs);
  values.get("output", options.output);

  set_up_console(false);
  SPEEDO_TRY(check_target(output, logs, "the picture " + output));
  LineChart chart = log_chart(options);
  for (const std::string& log : logs) {
    SPEEDO_ASSIGN(const std::string text, read_file(log));
    SPEEDO_ASSIGN(const LogTables tables, read_log_tables(text, log, year_last_written(log)));
    SPEEDO_ASSIGN(ChartLine curve, log_line(tables, options, log));
    chart.lines.push_back(std::move(curve));
  }
  SPEEDO_TRY(write_picture(to_svg(chart), output));
  SPEEDO_INFO("Wrote {}", output);
  return 0;
}

}  // namespace speedo
