// Logs of trainings, for `parse-log` and `plot-log`.
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "tools/log_plot.hpp"
#include "tools/log_tables.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(log)(Bytes bytes) {
  const auto tables = read_log_tables(text_of(bytes), "fuzz.log", 2026);
  if (!tables) return;
  for (const LogTable* table : {&tables->train, &tables->test, &tables->losses, &tables->rates}) {
    to_csv(*table, ',');
  }
  for (int type = 0; type < kLogChartTypes; ++type) {
    static_cast<void>(log_line(*tables, {.chart_type = type, .output = ""}, "fuzz.log"));
  }
}

}  // namespace
}  // namespace speedo::fuzz
