#pragma once

#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// What Caffe's tools/extra/parse_log.py and extract_seconds.py find in a log, by their own rules
// and with their weaknesses: where they would end with an exception, so do these.
namespace speedo::test {

struct LogRow {
  double iteration = 0.0, seconds = 0.0;
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  std::map<std::string, double> outputs;
  std::size_t columns() const { return outputs.size(); }
};

struct CaffeLog {
  std::vector<LogRow> train, test;
  std::vector<double> seconds;  // of each line that says "Iteration", since the start
};

class CaffeLogParser {
 public:
  static CaffeLog parse(const std::string& text) { return CaffeLogParser(text).all(); }

 private:
  using Time = std::chrono::sys_time<std::chrono::microseconds>;
  static constexpr int kYear = 2026;

  explicit CaffeLogParser(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines_.push_back(line);
  }

  static int number(const std::string& text) {
    int value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) {
      throw std::invalid_argument("int('" + text + "')");
    }
    return value;
  }

  // I1121 03:30:20.951838 32575 solver.cpp:45] text
  static Time time_of(const std::string& line, int year) {
    namespace chrono = std::chrono;
    std::istringstream words(line);
    std::string date, clock;
    words >> date >> clock;
    if (date.size() < 4) throw std::invalid_argument("no date: " + line);
    const std::size_t point = clock.rfind('.');
    if (point != 8) throw std::invalid_argument("no time: " + line);
    const chrono::year_month_day day{
        chrono::year(year), chrono::month(static_cast<unsigned>(number(date.substr(1, 2)))),
        chrono::day(static_cast<unsigned>(number(date.substr(3))))};
    if (!day.ok()) throw std::invalid_argument("no such day: " + date);
    return Time(chrono::sys_days(day)) + chrono::hours(number(clock.substr(0, 2))) +
           chrono::minutes(number(clock.substr(3, 2))) +
           chrono::seconds(number(clock.substr(6, 2))) +
           chrono::microseconds(number(clock.substr(point + 1)));
  }

  std::size_t start_line() const {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].find("Solving") != std::string::npos) return i;
    }
    throw std::runtime_error("Start time not found");
  }

  CaffeLog all() {
    const std::size_t start = start_line();
    start_time_ = time_of(lines_[start], kYear);
    CaffeLog log;
    for (const std::string& line : lines_) {
      if (line.find("Iteration") == std::string::npos) continue;
      log.seconds.push_back(seconds_at(time_of(line, kYear)));
    }
    for (std::size_t i = start + 1; i < lines_.size(); ++i) take(lines_[i], log);
    return log;
  }

  double seconds_at(Time time) const {
    return std::chrono::duration<double>(time - start_time_).count();
  }

  void take(const std::string& line, CaffeLog& log) {
    static const std::regex iteration_form(R"(Iteration (\d+))");
    static const std::regex rate_form(R"(lr = ([-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?))");
    static const std::regex train_form(R"(Train net output #(\d+): (\S+) = ([.\deE+-]+))");
    static const std::regex test_form(R"(Test net output #(\d+): (\S+) = ([.\deE+-]+))");
    std::smatch match;
    if (std::regex_search(line, match, iteration_form)) iteration_ = std::stod(match[1]);
    if (!iteration_) return;
    double seconds = 0.0;
    try {
      seconds = seconds_at(time_of(line, kYear));
    } catch (const std::invalid_argument&) {
      return;
    }
    if (std::regex_search(line, match, rate_form)) rate_ = std::stod(match[1]);
    take_output(line, train_form, seconds, train_row_, log.train);
    take_output(line, test_form, seconds, test_row_, log.test);
  }

  void take_output(const std::string& line, const std::regex& form, double seconds,
                   std::optional<LogRow>& row, std::vector<LogRow>& rows) const {
    std::smatch match;
    if (std::regex_search(line, match, form)) {
      if (!row || row->iteration != *iteration_) {
        if (row) rows.push_back(*row);
        row = LogRow{*iteration_, seconds, rate_, {}};
      }
      const std::string value = match[3];
      std::size_t used = 0;
      row->outputs[match[2]] = std::stod(value, &used);
      if (used != value.size()) throw std::invalid_argument("float('" + value + "')");
    }
    if (row && !rows.empty() && row->columns() == rows.front().columns()) {
      rows.push_back(*row);
      row.reset();
    }
  }

  std::vector<std::string> lines_;
  Time start_time_{};
  std::optional<double> iteration_;
  double rate_ = std::numeric_limits<double>::quiet_NaN();
  std::optional<LogRow> train_row_, test_row_;
};

}  // namespace speedo::test
