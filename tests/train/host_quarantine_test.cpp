#include "train/session/host_quarantine.hpp"

#include <speedo/base/limits.hpp>

#include "support/catch.hpp"

namespace speedo {

namespace {

constexpr Instant kStart = std::chrono::seconds(50);

}  // namespace

TEST_CASE("the host is what is before the first slash of a worker's name") {
  CHECK(host_of("node7/123/0") == "node7");
  CHECK(host_of("lonely") == "lonely");
  CHECK(host_of("/1/2").empty());
}

TEST_CASE("a host is kept out after lives without a run, longer each time, up to a maximum") {
  HostQuarantine flaps;
  for (int i = 0; i + 1 < kQuarantineAfter; ++i) CHECK(!flaps.gone("h", kStart));
  CHECK(flaps.left("h", kStart).count() == 0);
  Instant now = kStart;
  Instant expected = kQuarantineFirst;
  for (int i = 0; i < 12; ++i) {
    CHECK(flaps.gone("h", now) == expected);
    CHECK(flaps.left("h", now) == expected);
    CHECK(flaps.left("other", now).count() == 0);
    now += expected;
    CHECK(flaps.left("h", now).count() == 0);
    expected = std::min<Instant>(2 * expected, kQuarantineMax);
  }
  CHECK(expected == kQuarantineMax);
}

TEST_CASE("workers of a host that go together count once while it is kept out") {
  HostQuarantine flaps;
  for (int i = 0; i < 20; ++i) flaps.gone("h", kStart);
  CHECK(flaps.left("h", kStart) == kQuarantineFirst);
}

TEST_CASE("a finished run makes up for everything") {
  HostQuarantine flaps;
  for (int i = 0; i < kQuarantineAfter; ++i) flaps.gone("h", kStart);
  flaps.finished("h");
  CHECK(flaps.left("h", kStart).count() == 0);
  for (int i = 0; i + 1 < kQuarantineAfter; ++i) CHECK(!flaps.gone("h", kStart));
  CHECK(flaps.gone("h", kStart) == Instant{kQuarantineFirst});
}

}  // namespace speedo
