#include "monitor/curve_history.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace speedo {

void CurveHistory::add(const JobStatus& status) {
  const MasterProgress& progress = status.progress;
  if (!points_.empty() && ++skipped_ < stride_) return;
  skipped_ = 0;
  Point point{};
  point.seconds = static_cast<double>(status.uptime_ms) / 1e3;
  point.iteration = progress.iteration;
  if (progress.last_loss) point.loss = *progress.last_loss;
  if (progress.accuracy) point.accuracy = *progress.accuracy;
  point.images_per_second = status.images_per_second;
  point.workers = progress.workers_alive;
  if (!points_.empty() && progress.contributions > contributions_) {
    point.staleness = (progress.staleness_sum - staleness_sum_) /
                      static_cast<double>(progress.contributions - contributions_);
  }
  contributions_ = progress.contributions;
  staleness_sum_ = progress.staleness_sum;
  points_.push_back(point);
  if (points_.size() < kPointsMax) return;
  for (std::size_t i = 0; 2 * i < points_.size(); ++i) points_[i] = points_[2 * i];
  // The newest is among those that go.
  static_assert(kPointsMax % 2 == 0);
  points_.resize(kPointsMax / 2);
  skipped_ = stride_;
  stride_ *= 2;
}

std::string CurveHistory::json() const {
  using Json = nlohmann::ordered_json;
  const auto known = [](const std::optional<double>& value) -> Json {
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
  };
  Json object;
  for (const char* name : {"seconds", "iteration", "loss", "accuracy", "images_per_second",
                           "staleness", "workers"}) {
    object[name] = Json::array();
  }
  for (const Point& point : points_) {
    object["seconds"].push_back(point.seconds);
    object["iteration"].push_back(point.iteration);
    object["loss"].push_back(known(point.loss));
    object["accuracy"].push_back(known(point.accuracy));
    object["images_per_second"].push_back(point.images_per_second);
    object["staleness"].push_back(known(point.staleness));
    object["workers"].push_back(point.workers);
  }
  return json_text(object);
}

}  // namespace speedo
