#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {

TEST_CASE("async merges whoever reports and starts it again") {
  const auto async = strategy_named("async");
  CHECK(to_text(async->on(joined({0, 1}))) == "train 0, train 1");
  CHECK(to_text(async->on(trained(1))) == "merge 1, train 1");
  CHECK(to_text(async->on(trained(1))) == "merge 1, train 1");
  CHECK(to_text(async->on(trained(0))) == "merge 0, train 0");
}

TEST_CASE("async: a newcomer starts at once, a departure disturbs nobody") {
  const auto async = strategy_named("async");
  async->on(joined({0}));
  CHECK(to_text(async->on(joined({5}))) == "train 5");
  CHECK(to_text(async->on(left(0))).empty());
  CHECK(to_text(async->on(trained(5))) == "merge 5, train 5");
  CHECK(to_text(async->on(left(5))).empty());
  CHECK(to_text(async->on(joined({6}))) == "train 6");
}

TEST_CASE("async: a run that failed is followed by another, and merges nothing") {
  const auto async = strategy_named("async");
  async->on(joined({0}));
  CHECK(to_text(async->on(failed(0))) == "train 0");
}

TEST_CASE("async under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t) {
    return compare(*strategy_named("async"), async_model(), randoms);
  }));
}

}  // namespace speedo
