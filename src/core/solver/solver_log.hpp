#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/core/solver.hpp>

// The lines of Caffe's log that its tools read (parse_log.py, plot_training_log.py): same words,
// same number format, so they are built in one place.
namespace speedo {

struct Progress {
  std::int64_t iteration;
  std::int64_t iterations_done;  // since the last such line
  float seconds;                 // since the last such line
  int display;
  float loss;
};
// "Iteration 20 (5 iter/s, 0s/5 iters), loss = 0.0621173"
void log_progress(const Progress& progress);

// "    Train net output #0: loss = 0.018 (* 1 = 0.018 loss)", a line per score. kind: Train or
// Test.
void log_outputs(std::string_view kind, const std::vector<TestScores::Score>& scores);

// An output with more elements than this shows the first ones; one line says how many are left out.
inline constexpr int kLinesPerOutputMax = 32;
struct OutputLines {
  std::function<void(int index, const TestScores::Score& score)> show;
  std::function<void(const std::string& name, int count)> leave_out;
};
// Goes through `scores` in their order. The index counts what is left out, too.
void for_each_shown(const std::vector<TestScores::Score>& scores, const OutputLines& lines);

// As "{:g}", for lines that Caffe's parsers read: they take "-nan" and "-inf" for numbers and fail.
// A NaN is "nan", whatever its sign bit; minus infinity is "-1e999", which every parser reads so.
std::string number_text(float value);

// The weighted loss of a test; of a net without one 0, as in Caffe.
std::string loss_text(const TestScores& scores);

}  // namespace speedo
