// line := letter [year]month day blank hour:minute:second.microsecond blanks ... text
//   I1121 03:30:20.951838 32575 solver.cpp:239] Iteration 25 (5 iter/s, 0s/5 iters), loss = 0.03
//   I1121 03:30:20.951838 32575 solver.cpp:258]     Train net output #0: loss = 0.0104 (* 1 = ...)
//   I1121 03:30:20.951838 32575 sgd_solver.cpp:112] Iteration 25, lr = 0.05

#include "tools/log_tables.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/parse_number.hpp"

namespace speedo {

namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLearningRate = "LearningRate";

// The number at the front of `text`, as far as it goes; nothing if there is none.
std::optional<double> leading_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0.0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_word = end == text.data() || !std::isfinite(value);
  if (code != std::errc() || is_word) return std::nullopt;
  return value;
}

// What stands behind the first `mark` that a digit follows.
std::optional<double> count_behind(std::string_view line, std::string_view mark) {
  for (std::size_t at = line.find(mark); at != std::string_view::npos;
       at = line.find(mark, at + 1)) {
    const std::string_view rest = line.substr(at + mark.size());
    const std::size_t digits = std::min(rest.find_first_not_of(kDigits), rest.size());
    if (digits > 0) return parse_number<double>(rest.substr(0, digits));
  }
  return std::nullopt;
}

// "#0: loss = 0.0104 ..." behind `mark`.
std::optional<std::pair<std::string, double>> output_behind(std::string_view line,
                                                            std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + mark.size());
  const std::size_t digits = std::min(rest.find_first_not_of(kDigits), rest.size());
  if (digits == 0 || !rest.substr(digits).starts_with(": ")) return std::nullopt;
  rest.remove_prefix(digits + 2);
  const std::size_t blank = rest.find(" = ");
  if (blank == std::string_view::npos || rest.find(' ') != blank) return std::nullopt;
  const auto value = leading_number(rest.substr(blank + 3));
  if (!value) return std::nullopt;
  return std::pair(std::string(rest.substr(0, blank)), *value);
}

struct LogDate {
  int year = 0, month = 0, day = 0;
  std::int64_t microseconds = 0;  // of the day

  // Since the first of January 1970.
  std::int64_t whole_microseconds() const {
    const std::chrono::sys_days days = std::chrono::year_month_day(
        std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
        std::chrono::day(static_cast<unsigned>(day)));
    return std::chrono::microseconds(days.time_since_epoch()).count() + microseconds;
  }
};

std::optional<std::int64_t> time_of_day(std::string_view text) {
  if (text.size() < 9 || text[2] != ':' || text[5] != ':' || text[8] != '.') return std::nullopt;
  const auto hour = parse_number<std::int64_t>(text.substr(0, 2));
  const auto minute = parse_number<std::int64_t>(text.substr(3, 2));
  const auto second = parse_number<std::int64_t>(text.substr(6, 2));
  const std::string_view rest = text.substr(9);
  const auto part = parse_number<std::int64_t>(rest);
  if (!hour || !minute || !second || !part || rest.size() > 6) return std::nullopt;
  return ((*hour * 60 + *minute) * 60 + *second) * 1000000 + *part;
}

std::optional<LogDate> date_of(std::string_view line, int year) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return std::nullopt;
  line.remove_prefix(start);
  const std::size_t blank = line.find(' ');
  if (blank != 5 && blank != 9) return std::nullopt;
  const bool with_year = blank == 9;
  std::string_view digits = line.substr(1, blank - 1);
  LogDate date;
  date.year = year;
  if (with_year) {
    const auto written = parse_number<int>(digits.substr(0, 4));
    if (!written) return std::nullopt;
    date.year = *written;
    digits.remove_prefix(4);
  }
  const auto month = parse_number<int>(digits.substr(0, 2)),
             day = parse_number<int>(digits.substr(2));
  const std::string_view rest =
      line.substr(std::min(line.find_first_not_of(' ', blank), line.size()));
  const auto time = time_of_day(rest.substr(0, std::min(rest.find(' '), rest.size())));
  if (!month || !day || !time || *month < 1 || *month > 12 || *day < 1 || *day > 31) {
    return std::nullopt;
  }
  date.month = *month;
  date.day = *day;
  date.microseconds = *time;
  return date;
}

// Gathers the outputs of one kind into rows, as parse_log.py does: a row is there when it has as
// many columns as the first, or when the next iteration begins. A log's only row is there too,
// which parse_log.py loses.
class TableBuilder {
 public:
  explicit TableBuilder(std::string_view mark) : mark_(mark) {}

  void add(std::string_view line, double iteration, double seconds, double learning_rate) {
    if (const auto output = output_behind(line, mark_)) {
      if (row_.empty() || row_.front().second != iteration) {
        if (!row_.empty()) table_.rows.push_back(row_);
        row_ = {{"NumIters", iteration},
                {"Seconds", seconds},
                {std::string(kLearningRate), learning_rate}};
      }
      set(output->first, output->second);
    }
    if (!row_.empty() && !table_.rows.empty() && row_.size() == table_.rows.front().size()) {
      table_.rows.push_back(std::move(row_));
      row_.clear();
    }
  }

  LogTable finish() {
    // A first row is whole by itself; one behind others that is not full is left out, as there.
    if (table_.rows.empty() && !row_.empty()) table_.rows.push_back(std::move(row_));
    constexpr std::size_t kRateColumn = 2;
    if (table_.rows.size() > 1) table_.rows[0][kRateColumn] = table_.rows[1][kRateColumn];
    for (const auto& row : table_.rows) {
      for (const auto& [name, value] : row) {
        const auto known = std::find(table_.columns.begin(), table_.columns.end(), name);
        if (known == table_.columns.end()) table_.columns.push_back(name);
      }
    }
    return std::move(table_);
  }

 private:
  void set(const std::string& name, double value) {
    const auto found = std::find_if(row_.begin(), row_.end(),
                                    [&](const auto& cell) { return cell.first == name; });
    if (found != row_.end()) {
      found->second = value;
    } else {
      row_.emplace_back(name, value);
    }
  }

  const std::string_view mark_;
  LogTable table_;
  std::vector<std::pair<std::string, double>> row_;
};

// A number of the lines that show an iteration.
struct DisplayedNumber {
  std::string_view mark, column;
};
struct LogMoment {
  double iteration, seconds;
};
void add_number(std::string_view line, const DisplayedNumber& number, LogMoment moment,
                LogTable& table) {
  const std::size_t at = line.find(number.mark);
  if (at == std::string_view::npos || line.find("Iteration ") == std::string_view::npos) return;
  const auto value = leading_number(line.substr(at + number.mark.size()));
  if (!value) return;
  const std::string column(number.column);
  if (table.columns.empty()) table.columns = {"NumIters", "Seconds", column};
  table.rows.push_back(
      {{"NumIters", moment.iteration}, {"Seconds", moment.seconds}, {column, *value}});
}

// As Python's repr() writes a float: the fewest digits that give the number again.
std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  std::array<char, 64> text;
  const double size = std::abs(value);
  const bool plain = value == 0.0 || (size >= 1e-4 && size < 1e16);
  const auto [end, code] =
      std::to_chars(text.data(), text.data() + text.size(), value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string number(text.data(), end);
  if (plain && number.find('.') == std::string::npos) number += ".0";
  return number;
}

}  // namespace

Result<LogTables> read_log_tables(const std::string& text, const std::string& name, int year) {
  TableBuilder train("Train net output #"), test("Test net output #");
  LogTable losses, rates;
  std::optional<LogDate> start, last;
  double iteration = -1.0, learning_rate = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (!start) {
      if (line.find("Solving") != std::string_view::npos) start = last = date_of(line, year);
      continue;
    }
    if (const auto count = count_behind(line, "Iteration ")) iteration = *count;
    if (iteration < 0.0) continue;
    auto date = date_of(line, year);
    if (!date) continue;
    if (date->month < last->month && date->year == last->year) date = date_of(line, ++year);
    last = date;
    const std::int64_t elapsed = date->whole_microseconds() - start->whole_microseconds();
    const double seconds = static_cast<double>(elapsed) / 1e6;
    if (const std::size_t rate = line.find("lr = "); rate != std::string_view::npos) {
      learning_rate = leading_number(line.substr(rate + 5)).value_or(learning_rate);
    }
    train.add(line, iteration, seconds, learning_rate);
    test.add(line, iteration, seconds, learning_rate);
    add_number(line, {.mark = ", loss = ", .column = "loss"}, {iteration, seconds}, losses);
    add_number(line, {.mark = ", lr = ", .column = kLearningRate}, {iteration, seconds}, rates);
  }
  if (start) return LogTables{train.finish(), test.finish(), losses, rates};
  return Error{ErrorCode::kData,
               fmt::format("'{}' has no line with a date and \"Solving\", with which the log of a "
                           "training begins",
                           name)};
}

int year_last_written(const std::filesystem::path& file) {
  std::error_code code;
  const auto written = std::filesystem::last_write_time(file, code);
  const auto days = std::chrono::floor<std::chrono::days>(
      code ? std::chrono::system_clock::now()
           : std::chrono::time_point_cast<std::chrono::system_clock::duration>(
                 std::chrono::file_clock::to_sys(written)));
  return static_cast<int>(std::chrono::year_month_day(days).year());
}

std::string to_csv(const LogTable& table, char delimiter) {
  if (table.rows.empty()) return "";
  std::string text;
  for (const std::string& column : table.columns) {
    if (!text.empty()) text += delimiter;
    text += column;
  }
  for (const auto& row : table.rows) {
    text += "\r\n";
    for (const std::string& column : table.columns) {
      if (&column != &table.columns.front()) text += delimiter;
      const auto cell = std::find_if(row.begin(), row.end(),
                                     [&](const auto& each) { return each.first == column; });
      if (cell != row.end()) text += python_number(cell->second);
    }
  }
  return text + "\r\n";
}

}  // namespace speedo
