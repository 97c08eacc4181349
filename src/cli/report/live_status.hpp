#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/clock.hpp>

namespace speedo {

// What the live line tells. Unknown figures are left out.
struct LiveStatus {
  std::uint64_t iteration = 0;
  std::uint64_t iteration_max = 0;
  double iterations_per_second = 0.0;  // merges per second in a cluster
  bool merges = false;                 // call them merges
  double images_per_second = 0.0;
  std::optional<double> loss;
  std::optional<std::uint64_t> workers;
  bool paused = false;                 // for want of workers
  std::uint64_t stage = 0, stages = 1;  // of a hybrid, from 0
};

// "iteration 120/1000  stage 2/3  35.2 merges/s  2253 images/s  loss 0.1234  3 workers  ETA 0:25",
// cut to `width` columns; "paused" instead of speeds and ETA when nothing goes on.
std::string format_live_status(const LiveStatus& status, int width, bool colour);

// The least time between two changes of the live line.
inline constexpr Instant kLiveInterval = std::chrono::milliseconds(100);

// "0:05", "12:34", "1:02:03".
std::string format_duration(double seconds);

}  // namespace speedo
