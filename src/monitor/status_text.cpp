#include "monitor/status_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "cli/report/live_status.hpp"
#include "train/note_text.hpp"

namespace speedo {
namespace {

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kFaint = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

// Names of workers are "host/pid/k": what tells them apart is at both ends.
std::string cut_in_the_middle(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  if (width < 4) return text.substr(0, width);
  const std::size_t tail = (width - 2) / 2;
  return text.substr(0, width - 2 - tail) + ".." + text.substr(text.size() - tail);
}

std::string cut(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  return width < 4 ? text.substr(0, width) : text.substr(0, width - 3) + "...";
}

std::string ago(std::uint64_t milliseconds) {
  if (milliseconds < 10000) return fmt::format("{:.1f}s", static_cast<double>(milliseconds) / 1e3);
  return format_duration(static_cast<double>(milliseconds) / 1e3);
}

std::uint64_t all_time(const WorkerStatus& row) { return row.phases.run_us() + row.phases.wait_us; }

struct Column {
  const char* title;
  std::size_t width;
  int importance;  // the columns of the least go first
  std::function<std::string(const WorkerStatus&)> cell;
};

template <class Phase>
Column phase_column(const char* title, Phase phase) {
  return {title, 5, 1, [phase](const WorkerStatus& row) {
            return percent_of(phase(row.phases), all_time(row));
          }};
}

// All but the worker's name, which has the room that they leave.
const std::vector<Column>& all_columns() {
  static const std::vector<Column> columns = {
      {"STATE", 9, 9, [](const WorkerStatus& row) { return std::string(to_string(row.state)); }},
      {"ITER", 8, 8, [](const WorkerStatus& row) { return fmt::format("{}", row.iteration); }},
      {"IMAGES/S", 8, 7,
       [](const WorkerStatus& row) { return fmt::format("{:.0f}", row.images_per_second); }},
      {"STALE", 5, 4, [](const WorkerStatus& row) { return fmt::format("{}", row.staleness); }},
      {"BYTES/S", 8, 3, [](const WorkerStatus& row) { return short_bytes(row.bytes_per_second); }},
      {"SEEN", 6, 6, [](const WorkerStatus& row) { return ago(row.silent_ms); }},
      {"DROPPED", 7, 5, [](const WorkerStatus& row) { return fmt::format("{}", row.dropped); }},
      {"DEVICE", 6, 2, [](const WorkerStatus& row) { return row.device; }},
      phase_column("DATA", [](const PhaseTimes& times) { return times.data_us; }),
      phase_column("FWD", [](const PhaseTimes& times) { return times.forward_us; }),
      phase_column("BWD", [](const PhaseTimes& times) { return times.backward_us; }),
      phase_column("EXCH", [](const PhaseTimes& times) { return times.exchange_us; }),
      phase_column("WAIT", [](const PhaseTimes& times) { return times.wait_us; }),
  };
  return columns;
}

std::size_t width_of(const std::vector<const Column*>& columns) {
  std::size_t width = 0;
  for (const Column* column : columns) width += 1 + column->width;
  return width;
}

constexpr std::size_t kNameMin = 12;

// Those that fit beside a name of so many characters, as long as it takes no more than its least.
std::vector<const Column*> columns_for(std::size_t width, std::size_t name) {
  std::vector<const Column*> columns;
  for (const Column& column : all_columns()) columns.push_back(&column);
  const std::size_t name_room = std::max(kNameMin, std::min<std::size_t>(name, 20));
  while (columns.size() > 2 && name_room + width_of(columns) > width) {
    const int least = (*std::ranges::min_element(columns, {}, &Column::importance))->importance;
    std::erase_if(columns, [&](const Column* column) { return column->importance == least; });
  }
  return columns;
}

std::vector<std::string> head_lines(const JobStatus& status) {
  const MasterProgress& progress = status.progress;
  std::string first = fmt::format("Job {}, training {}, {}", status.job, status.training,
                                  status.schedule);
  if (status.stages > 1) first += fmt::format(", stage {}/{}", progress.stage + 1, status.stages);
  first += ", master up " + format_duration(static_cast<double>(status.uptime_ms) / 1e3);
  std::string second;
  if (status.over) {
    second = "OVER";
  } else if (progress.paused) {
    second = fmt::format("PAUSED: {} of {} workers", progress.workers_alive, status.workers_min);
  } else {
    second = progress.training ? "training" : "waiting for workers";
  }
  if (status.store_away) second += "  STORE AWAY";
  second += "  " + count_workers(progress.workers_alive);
  if (progress.last_loss) second += fmt::format("  loss {:.4f}", *progress.last_loss);
  if (progress.accuracy) second += fmt::format("  accuracy {:.4f}", *progress.accuracy);
  if (progress.contributions > 0) {
    second += fmt::format("  staleness {:.2f}", progress.staleness_sum /
                                                    static_cast<double>(progress.contributions));
  }
  if (progress.discarded > 0) second += fmt::format("  dropped {}", progress.discarded);
  if (progress.rejected > 0) second += fmt::format("  rejected {}", progress.rejected);
  if (progress.ignored > 0) second += fmt::format("  late {}", progress.ignored);
  const ReadFaults& faults = progress.read_faults;
  if (faults.skipped_records > 0) second += fmt::format("  bad records {}", faults.skipped_records);
  if (faults.parser_deaths > 0) second += fmt::format("  parsers ended {}", faults.parser_deaths);
  return {first, second};
}

bool stands_still(const JobStatus& status) {
  return status.over || status.progress.paused || status.store_away;
}

std::string progress_line(const JobStatus& status, int width, bool colour) {
  LiveStatus live;
  live.iteration = status.progress.iteration;
  live.iteration_max = status.max_iteration;
  live.merges = true;
  live.iterations_per_second = stands_still(status) ? 0.0 : status.merges_per_second;
  live.images_per_second = stands_still(status) ? 0.0 : status.images_per_second;
  live.paused = status.progress.paused;
  return format_live_status(live, width + 1, colour);
}

std::string row_text(const WorkerStatus& row, std::size_t name_width,
                     const std::vector<const Column*>& columns) {
  std::string line = fmt::format("{:<{}}", cut_in_the_middle(row.name, name_width), name_width);
  for (const Column* column : columns) {
    line += fmt::format(" {:>{}}", cut(column->cell(row), column->width), column->width);
  }
  return line;
}

std::string table(const JobStatus& status, std::size_t width, bool colour) {
  std::size_t longest = 6;
  for (const WorkerStatus& row : status.workers) longest = std::max(longest, row.name.size());
  const std::vector<const Column*> columns = columns_for(width, longest);
  const std::size_t others = width_of(columns);
  const std::size_t name_width = std::min(longest, width > others ? width - others : 1);
  std::string title = fmt::format("{:<{}}", cut("WORKER", name_width), name_width);
  for (const Column* column : columns) {
    title += fmt::format(" {:>{}}", column->title, column->width);
  }
  std::string text = (colour ? kBold + title + kPlain : title) + "\n";
  for (const WorkerStatus& row : status.workers) {
    const std::string line = row_text(row, name_width, columns);
    const bool is_faint = colour && row.state == WorkerState::kGone;
    text += (is_faint ? kFaint + line + kPlain : line) + "\n";
  }
  return text;
}

}  // namespace

std::string short_bytes(double bytes) {
  constexpr std::array<const char*, 4> kUnits = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return bytes < 9.95 && unit > 0 ? fmt::format("{:.1f}{}", bytes, kUnits[unit])
                                  : fmt::format("{:.0f}{}", bytes, kUnits[unit]);
}

std::vector<std::string> phase_lines(const JobStatus& status) {
  constexpr std::size_t kLinesMax = 32;
  std::vector<std::string> lines;
  for (const WorkerStatus& row : status.workers) {
    if (row.runs == 0) continue;
    if (lines.size() == kLinesMax) {
      lines.emplace_back("... and others");
      break;
    }
    const PhaseTimes& times = row.phases;
    const std::uint64_t all = all_time(row);
    lines.push_back(fmt::format(
        "{}: {} runs, {} data, {} forward, {} backward, {} exchange, {} wait", row.name, row.runs,
        percent_of(times.data_us, all), percent_of(times.forward_us, all),
        percent_of(times.backward_us, all), percent_of(times.exchange_us, all),
        percent_of(times.wait_us, all)));
  }
  return lines;
}

std::string percent_of(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::optional<double> seconds_left(const JobStatus& status) {
  if (stands_still(status) || status.merges_per_second <= 0.0) return std::nullopt;
  if (status.max_iteration <= status.progress.iteration) return std::nullopt;
  return static_cast<double>(status.max_iteration - status.progress.iteration) /
         status.merges_per_second;
}

std::string status_text(const JobStatus& status, int width, bool colour) {
  const auto room = static_cast<std::size_t>(std::max(width, 20));
  std::string text;
  const std::vector<std::string> head = head_lines(status);
  text += cut(head[0], room) + "\n";
  text += progress_line(status, static_cast<int>(room), colour) + "\n";
  text += cut(head[1], room) + "\n";
  if (status.workers.empty()) return text;
  text += "\n" + table(status, room, colour);
  for (const WorkerStatus& row : status.workers) {
    if (row.state != WorkerState::kGone) continue;
    const std::string line =
        fmt::format("{} has been gone for {}: {}", row.name, ago(row.silent_ms), row.gone_why);
    text += cut(line, room) + "\n";
  }
  return text;
}

}  // namespace speedo
