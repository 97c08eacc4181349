#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/train/job_status.hpp>

namespace speedo {

// The curves of a training as long as its master lives, for the page. When there are too many
// points every second one is left out, and from then on every second one that comes.
// Thread safety: one thread at a time.
class CurveHistory {
 public:
  void add(const JobStatus& status);
  // {"seconds": [...], "iteration": [...], "loss": [...], "accuracy": [...], ...}, null where
  // nothing is known.
  std::string json() const;
  std::size_t size() const { return points_.size(); }
  static constexpr std::size_t kPointsMax = 1200;

 private:
  struct Point {
    double seconds;
    std::uint64_t iteration;
    std::optional<double> loss, accuracy;
    double images_per_second;
    std::optional<double> staleness;  // mean since the point before
    std::uint64_t workers;
  };
  std::vector<Point> points_;
  std::uint64_t stride_ = 1, skipped_ = 0;
  std::uint64_t contributions_ = 0;   // as of the last point
  double staleness_sum_ = 0.0;
};

}  // namespace speedo
