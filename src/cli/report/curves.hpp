#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>

#include "cli/report/event_file.hpp"

namespace speedo {

// The curves of a training, for TensorBoard (--tensorboard). A file that cannot be written any more
// is warned of once and left; training goes on. Thread safety: all methods from any thread.
class Curves {
 public:
  static constexpr std::uint64_t kPointsAll = 10'000;
  static constexpr Instant kPointPause = std::chrono::milliseconds(100);

  // Empty folder: nothing is written. Error: kCannotWrite.
  static Result<std::unique_ptr<Curves>> create(const std::string& folder);

  // The training goes on from an iteration that an earlier process came to. Readers drop what older
  // files in the folder have of those that follow. Requires: nothing was added.
  void go_on(std::uint64_t from);
  // "train/NAME" of an iteration; of one that the training has only gone on from, nothing. What is
  // not finite is left out. After kPointsAll of them, those that follow another one within
  // kPointPause are left out: a long training at a thousand merges a second would fill a disk.
  void add(std::uint64_t iteration, std::vector<Scalar> scalars);
  // "test/NAME" of each output, and of the second net on "test1/NAME".
  void add_tests(std::uint64_t iteration, const std::vector<TestScores>& tests);

 private:
  explicit Curves(std::unique_ptr<EventFile> file) : file_(std::move(file)) {}
  void write(std::uint64_t iteration, std::vector<Scalar> scalars);

  std::mutex mutex_;
  std::unique_ptr<EventFile> file_;         // null: nothing is written, or not any more
  std::optional<std::uint64_t> iteration_;  // that was added last, or gone on from
  std::optional<std::uint64_t> from_;       // gone on from, and readers have not been told
  std::uint64_t points_ = 0;  // added
  Instant added_at_{}, flushed_at_{};
};

}  // namespace speedo
