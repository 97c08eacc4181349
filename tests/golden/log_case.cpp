// Log cases: Caffe's standard error of a run, with the first snapshot that the run wrote beside it.
// A run of ours that goes on from that snapshot must write the lines that Caffe wrote after it: the
// same words in the same order, with the same numbers. Only the speed may differ, and the first
// mean loss, which reaches back to before the snapshot.

#include <charconv>
#include <cmath>
#include <cstdio>
#include <regex>
#include <sstream>
#include <string>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/base/file.hpp>
#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "data/model_files.hpp"
#include "golden/golden_case.hpp"
#include "support/temp_dir.hpp"

namespace speedo::golden {
namespace {

namespace fs = std::filesystem;

// Six digits are printed; the last ones may differ by rounding.
constexpr double kPrintedTolerance = 1e-4;

using Lines = std::vector<std::string>;

Lines split_lines(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// From the test or the loss of `iteration` on, without the lines of whoever writes files.
Lines lines_from(std::int64_t iteration, const Lines& lines) {
  static const std::regex speed(R"(\([^()]* iter/s, [^()]*s/)");
  const std::string first = fmt::format("Iteration {}, ", iteration);
  const std::string first_mean = fmt::format("Iteration {} (", iteration);
  Lines kept;
  bool started = false;
  for (const std::string& line : lines) {
    started = started || line.starts_with(first);
    if (!started || line.starts_with("Snapshotting") || line.starts_with(first_mean)) continue;
    kept.push_back(std::regex_replace(line, speed, "("));
  }
  return kept;
}

// The texts of the lines that files whose names match `file` logged, without glog's prefix.
Lines logged_by(const std::string& file, const std::string& log) {
  const std::regex line_form(R"(^[IWE]\d{8} [\d:]+\.\d{6} +\d+ )" + file + R"(:\d+\] (.*)$)");
  Lines lines;
  for (const std::string& line : split_lines(log)) {
    std::smatch match;
    if (std::regex_match(line, match, line_form)) lines.push_back(match[1]);
  }
  return lines;
}

bool same_word(const std::string& a, const std::string& b) {
  if (a == b) return true;
  double x = 0.0;
  double y = 0.0;
  const auto read = [](const std::string& word, double& value) {
    return std::from_chars(word.data(), word.data() + word.size(), value).ec == std::errc();
  };
  return read(a, x) && read(b, y) && std::abs(x - y) <= kPrintedTolerance * std::abs(y);
}

bool same_line(const std::string& a, const std::string& b) {
  std::istringstream left(a);
  std::istringstream right(b);
  const auto indent = [](const std::string& line) { return line.find_first_not_of(' '); };
  if (indent(a) != indent(b)) return false;
  std::string x;
  std::string y;
  while (left >> x) {
    if (!(right >> y) || !same_word(x, y)) return false;
  }
  return !(right >> y);
}

// The rest of the first line that contains `words`.
std::string after(const std::string& log, const std::string& words) {
  const std::size_t begin = log.find(words);
  if (begin == std::string::npos) return "";
  const std::size_t name = begin + words.size();
  return log.substr(name, log.find('\n', name) - name);
}

}  // namespace

Result<Comparison> run_log_case(const fs::path& path, const World& world) {
  SPEEDO_ASSIGN(const std::string log, read_file(path.string() + ".log"));
  const fs::path folder = path.parent_path();
  SPEEDO_ASSIGN(const auto message, read_solver_prototxt(folder / "solver.prototxt"));
  const TempDir scratch;
  const fs::path our_log = scratch / "stderr";
  std::FILE* const redirected = std::freopen(our_log.c_str(), "w", stderr);
  SPEEDO_ASSERT(redirected != nullptr);
  set_up_logging();
  set_log_level(LogLevel::kInfo);

  const SolverOptions options{.backend = world.backend, .feeds = world.feeds, .base = folder};
  SPEEDO_ASSIGN(const auto solver, Solver::create(message, options, {}));
  const std::string state_file = after(log, "Snapshotting solver state to binary proto file ");
  SPEEDO_ASSIGN(const auto state, read_solver_state(folder / state_file));
  SPEEDO_ASSIGN(const auto weights, read_model(folder / state.learned_net()));
  SPEEDO_TRY(solver->restore(state, weights));
  SPEEDO_TRY(solver->solve());

  std::fflush(stderr);
  SPEEDO_ASSIGN(const std::string written, read_file(our_log));
  const Lines ours = lines_from(state.iter(), logged_by(R"(\w+\.cpp)", written));
  const Lines caffes = lines_from(state.iter(), logged_by(R"(\w*solver\.cpp)", log));
  Comparison comparison;
  comparison.require(ours.size() == caffes.size() && !ours.empty(),
                     fmt::format("{} lines, not {}", ours.size(), caffes.size()));
  for (std::size_t i = 0; i < ours.size() && i < caffes.size(); ++i) {
    comparison.require(same_line(ours[i], caffes[i]),
                       fmt::format("line '{}', not '{}'", ours[i], caffes[i]));
  }
  return comparison;
}

}  // namespace speedo::golden
