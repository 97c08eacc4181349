#include "cli/emulated_compute.hpp"

#include "support/catch.hpp"

namespace speedo {

TEST_CASE("--emulate-compute takes milliseconds, and by how many percent they differ") {
  const auto plain = parse_emulated_compute("25.5");
  REQUIRE(plain);
  CHECK(plain->step == std::chrono::microseconds(25500));
  CHECK(plain->spread == 0.0);
  const auto spread = parse_emulated_compute("0:20");
  REQUIRE(spread);
  CHECK(spread->step == Instant{0});
  CHECK(spread->spread == Approx(0.2));
  for (const char* text : {"", "x", "-1", "1:", "1:-1", "1:101", "1:2:3", "nan", "inf", "1:nan",
                           "3600001", " 5", ":5"}) {
    CAPTURE(text);
    const auto refused = parse_emulated_compute(text);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUsage);
    CHECK(refused.error().message.find("MS:SPREAD") != std::string::npos);
  }
}

}  // namespace speedo
