#include "monitor/curve_history.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace speedo {
namespace {

JobStatus at_second(std::uint64_t second) {
  JobStatus status;
  status.uptime_ms = 1000 * second;
  status.progress.iteration = status.progress.merges = 10 * second;
  status.progress.contributions = 20 * second;
  status.progress.staleness_sum = 30.0 * static_cast<double>(second);
  if (second > 0) status.progress.last_loss = 1.0F / static_cast<float>(1 + second);
  status.images_per_second = 100.0;
  return status;
}

TEST_CASE("A long training has few points, of its whole length, evenly apart") {
  CurveHistory curves;
  constexpr std::uint64_t kSeconds = 20000;
  for (std::uint64_t second = 0; second < kSeconds; ++second) {
    curves.add(at_second(second));
    REQUIRE(curves.size() < CurveHistory::kPointsMax);
  }
  CHECK(curves.size() > CurveHistory::kPointsMax / 4);
  const auto object = nlohmann::json::parse(curves.json());
  const auto seconds = object["seconds"].get<std::vector<double>>();
  CHECK(seconds.front() == 0.0);
  CHECK(seconds.back() > 0.95 * kSeconds);
  const double step = seconds[1] - seconds[0];
  for (std::size_t i = 1; i < seconds.size(); ++i) {
    REQUIRE(seconds[i] - seconds[i - 1] == step);
  }
  for (const char* name : {"iteration", "loss", "accuracy", "images_per_second", "staleness",
                           "workers"}) {
    INFO(name);
    CHECK(object[name].size() == seconds.size());
  }
  CHECK(object["staleness"][1] == Approx(1.5));
  CHECK(object["loss"][0].is_null());  // nothing was merged
  CHECK(object["accuracy"][5].is_null());
}

}  // namespace
}  // namespace speedo
