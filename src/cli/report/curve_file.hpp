#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// The one curve of a training as a table of comma-separated values (--curve), through all its
// masters and resumes: a line every `display` iterations, or for each without one, and a line for
// each test, which has no loss. The columns are in header(); what is not known is left empty.
//
// Lines are written whole, each at once. One that cannot be written is taken back and warned of,
// and none follows; training goes on. Thread safety: all methods from any thread.
class CurveFile {
 public:
  struct Options {
    std::string path;                 // empty: nothing is written
    std::uint64_t display = 0;
    std::uint64_t max_iteration = 0;  // has a line in any case
  };
  // `clock` outlives it. Errors: kCannotWrite; kData for a file that holds something else.
  static Result<std::unique_ptr<CurveFile>> create(const Options& options,
                                                   const Clock& clock = steady_clock());
  ~CurveFile();
  CurveFile(const CurveFile&) = delete;
  CurveFile& operator=(const CurveFile&) = delete;

  static std::string_view header();

  // The iteration that training begins with; the first call counts. Lines of later ones, which an
  // earlier run has left, go; the time goes on from that of the last line that stays. From
  // iteration 0 the file begins anew.
  void begin(std::uint64_t iteration);

  // Whether it is time for a line. Requires: training has begun.
  bool is_due(std::uint64_t iteration);
  struct Point {
    std::uint64_t iteration = 0;
    float loss = 0.0F, rate = 0.0F;
    std::uint64_t workers = 1;
    double staleness = 0.0;  // merges between reading and merge, mean since the line before
  };
  // What is no later than a line that is there, and a loss that is not finite, have none.
  void add(const Point& point);
  // NaN: unknown.
  void add_test(std::uint64_t iteration, float accuracy, float loss);

 private:
  CurveFile(const Options& options, const Clock& clock) : options_(options), clock_(clock) {}
  Result<std::string> read() const;
  std::string kept_of(const std::string& content, std::uint64_t iteration);
  void write(const std::string& line);
  void give_up(const std::string& why);
  std::string seconds_text() const;

  const Options options_;
  const Clock& clock_;
  std::mutex mutex_;
  bool begun_ = false;
  int file_ = -1;                            // negative: not open, or not any more
  std::int64_t bytes_ = 0;                   // of whole lines
  std::uint64_t first_ = 0;                  // where training began
  std::optional<std::uint64_t> added_, tested_;  // the last line of each kind
  double seconds_before_ = 0.0;              // of earlier runs
  Instant begun_at_{};
};

// Of a training by this solver.
CurveFile::Options curve_options(const std::string& path, const caffe::SolverParameter& solver);

}  // namespace speedo
