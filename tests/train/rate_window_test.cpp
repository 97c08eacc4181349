#include "train/session/rate_window.hpp"

#include <chrono>

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("A rate is that of the last ten seconds") {
  RateWindow rate;
  CHECK(rate.per_second(std::chrono::seconds(5)) == 0.0);
  Instant now = std::chrono::seconds(0);
  for (int i = 0; i < 200; ++i) {
    now += std::chrono::milliseconds(100);
    rate.add(now, 5);
  }
  CHECK(rate.per_second(now) == Approx(50.0).epsilon(0.03));
  // Twice as fast from now on: after ten seconds nothing is left of what was before.
  for (int i = 0; i < 105; ++i) {
    now += std::chrono::milliseconds(100);
    rate.add(now, 10);
  }
  CHECK(rate.per_second(now) == Approx(100.0).epsilon(0.05));
}

TEST_CASE("Steps that are further apart than the window still have a rate") {
  RateWindow rate;
  rate.add(std::chrono::seconds(100), 64);
  CHECK(rate.per_second(std::chrono::seconds(100)) == 0.0);
  rate.add(std::chrono::seconds(132), 64);
  CHECK(rate.per_second(std::chrono::seconds(132)) == Approx(2.0));
  rate.add(std::chrono::seconds(164), 64);
  CHECK(rate.per_second(std::chrono::seconds(190)) == Approx(2.0));
}

TEST_CASE("A rate falls when the next step is overdue") {
  RateWindow rate;
  for (int i = 0; i <= 10; ++i) rate.add(std::chrono::seconds(i), 10);
  CHECK(rate.per_second(std::chrono::seconds(11)) == Approx(10.0));
  CHECK(rate.per_second(std::chrono::seconds(22)) == Approx(5.0));
  CHECK(rate.per_second(std::chrono::seconds(1000)) == 0.0);
}

TEST_CASE("After a pause a rate is that of what came since") {
  RateWindow rate;
  Instant now = std::chrono::seconds(0);
  const auto go_on = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      now += std::chrono::milliseconds(100);
      rate.add(now, 5);
    }
  };
  go_on(200);
  now += std::chrono::seconds(60);
  CHECK(rate.per_second(now) == 0.0);
  go_on(20);
  CHECK(rate.per_second(now) == Approx(50.0).epsilon(0.1));
}

}  // namespace
}  // namespace speedo
