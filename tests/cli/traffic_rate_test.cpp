#include "cli/traffic_rate.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("rates are read with their units") {
  CHECK(parse_traffic_rate("200Mbit").value() == 25e6);
  CHECK(parse_traffic_rate("1Gbit/s").value() == 125e6);
  CHECK(parse_traffic_rate("800kbit").value() == 100e3);
  CHECK(parse_traffic_rate("2.5MB").value() == 2.5e6);
  CHECK(parse_traffic_rate("10kB/s").value() == 10e3);
  CHECK(parse_traffic_rate("1GB").value() == 1e9);
}

TEST_CASE("a rate of nothing, without a unit, or that is none, is refused with the remedy") {
  for (const char* text : {"0", "0Mbit", "-5MB", "fast", "200", "Mbit", "nanMB", "infGB", "9kB",
                           "200mbit", "200 Mbit/h", "1e400MB"}) {
    CAPTURE(text);
    const auto rate = parse_traffic_rate(text);
    REQUIRE_FALSE(rate);
    CHECK(rate.error().code == ErrorCode::kUsage);
    CHECK(rate.error().message.find("200Mbit") != std::string::npos);
  }
  CHECK(traffic_limit("").value() == nullptr);
  CHECK_FALSE(traffic_limit("0"));
}

}  // namespace
}  // namespace speedo
