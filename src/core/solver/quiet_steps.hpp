#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/device_steps.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

class KeptValues;
class Net;
class UpdateRule;

// Iterations that nobody looks at, on a device that computes beside the host: they are queued, and
// their losses read several at a time. From the second on they are recorded and replayed at once,
// where that can be. Thread safety: one thread at a time.
class QuietSteps {
 public:
  // What an iteration is of; all of it outlives this.
  struct Parts {
    Net& net;
    UpdateRule& rule;
    KeptValues& kept;
    int passes = 1;
  };
  // Null, and a line of the log says why, where there cannot be any; without a line where the host
  // computes itself. What is kept is guarded meanwhile. Error: kFull.
  static Result<std::unique_ptr<QuietSteps>> create(const Parts& parts);
  ~QuietSteps();
  QuietSteps(const QuietSteps&) = delete;
  QuietSteps& operator=(const QuietSteps&) = delete;

  // Queues the iteration that is next in the data. Requires: not is_due(). Errors: those of
  // Net::forward().
  Result<void> queue(std::int64_t iteration);
  // How many were queued since the last read().
  std::int64_t pending() const { return pending_; }
  // Whether it is time to read.
  bool is_due() const;
  // Waits. The losses of those that were queued, up to the first that is not finite: what changed
  // weights, histories and statistics came before that one. Fewer, all of them finite: the device
  // has failed.
  std::vector<float> read();

 private:
  enum class Recording { kWarmsUp, kIsDue, kIsThere, kCannotBe };
  QuietSteps(const Parts& parts, std::unique_ptr<DeviceSteps> steps);
  Result<void> queue_rest();
  Result<void> record();
  Result<void> replay();
  void give_up_recording(const std::string& why);

  const Parts parts_;
  const std::unique_ptr<DeviceSteps> steps_;
  Recording recording_ = Recording::kWarmsUp;
  std::vector<std::uint64_t> numbers_;  // random ones of a step
  float recorded_scale_ = 1.0F;  // of the gradients
  std::int64_t pending_ = 0;
  Instant read_at_{};
};

}  // namespace speedo
