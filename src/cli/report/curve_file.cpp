// One line: iteration,seconds,loss,accuracy,test_loss,rate,workers,staleness.

#include "cli/report/curve_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "base/parse_number.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kHeader =
    "iteration,seconds,loss,accuracy,test_loss,rate,workers,staleness\n";
constexpr std::size_t kFields = 8;
constexpr std::size_t kFileBytesMax = std::size_t{1} << 30U;

// What a line of the file says that decides about its staying.
struct Line {
  std::uint64_t iteration;
  double seconds;
  bool is_test;
};

// Nothing: it is no line of a curve.
std::optional<Line> parse_line(std::string_view text) {
  std::string_view fields[kFields];
  for (std::size_t i = 0; i < kFields; ++i) {
    const std::size_t comma = text.find(',');
    const bool is_last = i + 1 == kFields;
    if ((comma == std::string_view::npos) != is_last) return std::nullopt;
    fields[i] = text.substr(0, comma);
    if (!is_last) text.remove_prefix(comma + 1);
  }
  const auto iteration = parse_number<std::uint64_t>(fields[0]);
  const auto seconds = parse_number<double>(fields[1]);
  if (!iteration || !seconds) return std::nullopt;
  return Line{*iteration, *seconds, fields[2].empty()};
}

std::string number_or_nothing(float value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

Error cannot_write(const std::string& path, const std::string& why) {
  return {ErrorCode::kCannotWrite,
          "the curve cannot be written to '" + path + "': " + why + "; give another --curve"};
}

}  // namespace

std::string_view CurveFile::header() { return kHeader; }

CurveFile::Options curve_options(const std::string& path, const caffe::SolverParameter& solver) {
  return {.path = path,
          .display = static_cast<std::uint64_t>(std::max(0, solver.display())),
          .max_iteration = static_cast<std::uint64_t>(std::max(0, solver.max_iter()))};
}

Result<std::unique_ptr<CurveFile>> CurveFile::create(const Options& options, const Clock& clock) {
  auto curve = std::unique_ptr<CurveFile>(new CurveFile(options, clock));
  const std::string& path = options.path;
  if (path.empty()) return curve;
  std::error_code code;
  if (fs::exists(path, code) && !fs::is_regular_file(path, code)) {
    return cannot_write(path, "it is not a file");
  }
  SPEEDO_ASSIGN(const std::string content, curve->read());
  const std::size_t common = std::min(content.size(), kHeader.size());
  const bool is_curve = content.compare(0, common, kHeader.substr(0, common)) == 0 &&
                        (common == kHeader.size() || content.find('\n') == std::string::npos);
  if (!is_curve) {
    return Error{ErrorCode::kData, "--curve '" + path + "' is there and holds something else than "
                                       "a curve; it stays as it is: give another file"};
  }
  curve->file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (curve->file_ < 0) return cannot_write(path, std::strerror(errno));
  return curve;
}

CurveFile::~CurveFile() {
  if (file_ >= 0) ::close(file_);
}

// Empty: there is none.
Result<std::string> CurveFile::read() const {
  auto content = read_file(options_.path, kFileBytesMax);
  if (!content && content.error().code == ErrorCode::kNotFound) return std::string();
  return content;
}

void CurveFile::begin(std::uint64_t iteration) {
  const std::lock_guard lock(mutex_);
  if (begun_) return;
  begun_ = true;
  first_ = iteration;
  begun_at_ = clock_.now();
  if (file_ < 0) return;
  auto content = read();
  if (!content) return give_up(content.error().message);
  const std::string kept = std::string(kHeader) + kept_of(*content, iteration);
  bytes_ = static_cast<std::int64_t>(kept.size());
  // A new file even where nothing changes: a master that this one has replaced, and that does not
  // know it yet, then writes to the old one, which nobody sees.
  const auto written = write_file_atomically(options_.path, kept);
  if (!written) return give_up(written.error().message);
  ::close(file_);
  file_ = ::open(options_.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) give_up(std::strerror(errno));
}

// Lines up to `iteration`, each of its kind once; a last one that is not whole is none.
std::string CurveFile::kept_of(const std::string& content, std::uint64_t iteration) {
  std::string kept;
  if (iteration == 0) return kept;
  std::size_t begin = std::min(content.size(), kHeader.size());
  for (std::size_t end = 0; (end = content.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string_view text(content.data() + begin, end - begin);
    const std::optional<Line> line = parse_line(text);
    if (!line || line->iteration > iteration) continue;
    std::optional<std::uint64_t>& last = line->is_test ? tested_ : added_;
    if (last && line->iteration <= *last) continue;
    last = line->iteration;
    seconds_before_ = std::max(seconds_before_, line->seconds);
    kept.append(text).push_back('\n');
  }
  return kept;
}

bool CurveFile::is_due(std::uint64_t iteration) {
  const std::lock_guard lock(mutex_);
  if (file_ < 0 || !begun_) return false;
  const std::uint64_t before = added_.value_or(first_);
  if (iteration <= before) return false;
  const std::uint64_t display = std::max<std::uint64_t>(1, options_.display);
  return iteration / display != before / display || iteration >= options_.max_iteration;
}

void CurveFile::add(const Point& point) {
  const std::lock_guard lock(mutex_);
  if (!begun_ || (added_ && point.iteration <= *added_) || !std::isfinite(point.loss)) return;
  added_ = point.iteration;
  write(fmt::format("{},{},{},,,{},{},{:.6g}\n", point.iteration, seconds_text(), point.loss,
                    number_or_nothing(point.rate), point.workers, point.staleness));
}

void CurveFile::add_test(std::uint64_t iteration, float accuracy, float loss) {
  const std::lock_guard lock(mutex_);
  if (!begun_ || (tested_ && iteration <= *tested_)) return;
  tested_ = iteration;
  write(fmt::format("{},{},,{},{},,,\n", iteration, seconds_text(), number_or_nothing(accuracy),
                    number_or_nothing(loss)));
}

std::string CurveFile::seconds_text() const {
  const std::chrono::duration<double> now = clock_.now() - begun_at_;
  return fmt::format("{:.3f}", seconds_before_ + now.count());
}

void CurveFile::write(const std::string& line) {
  if (file_ < 0) return;
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) {
    bytes_ += written;
    return;
  }
  const std::string why = written < 0 ? std::strerror(errno) : "there is no more room";
  if (written > 0 && ::ftruncate(file_, bytes_) != 0) {
    SPEEDO_WARN("'{}' ends within a line", options_.path);
  }
  give_up(why);
}

void CurveFile::give_up(const std::string& why) {
  SPEEDO_WARN("{}; no more lines are written", cannot_write(options_.path, why).message);
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace speedo
