#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>

namespace speedo {

// How many bytes a second a process may exchange with its stores, each way by itself: a token
// bucket that all its connections take from. Thread safety: all methods from any thread.
class TrafficLimit {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Way { kOut, kIn };
  // A pause in the traffic is made up for by so much at once, at most.
  static constexpr std::chrono::milliseconds kBurst{10};
  static constexpr double kBurstBytesMin = 16384.0, kBurstBytesMax = 1 << 20U;

  // Requires: above 0.
  explicit TrafficLimit(double bytes_per_second, Clock::time_point now = Clock::now())
      : rate_(bytes_per_second),
        burst_(std::clamp(rate_ * std::chrono::duration<double>(kBurst).count(), kBurstBytesMin,
                          kBurstBytesMax)),
        ways_{Bucket{burst_, now}, Bucket{burst_, now}} {}

  // So many of `wanted` bytes may go now, 0 if those were too few to be worth a system call.
  std::size_t take(Way way, std::size_t wanted, Clock::time_point now = Clock::now());
  // What was taken and did not go.
  void give_back(Way way, std::size_t bytes);
  // When asking for so many again is worth it.
  Clock::time_point next(Way way, std::size_t wanted);

 private:
  // Less is waited for.
  static constexpr double kTakeMin = 4096.0;
  struct Bucket {
    double tokens;
    Clock::time_point filled_at;
  };
  Bucket& bucket(Way way) { return ways_[static_cast<std::size_t>(way)]; }

  const double rate_, burst_;
  std::mutex mutex_;
  std::array<Bucket, 2> ways_;  // guarded by mutex_
};

}  // namespace speedo
