#include "train/session/stage_switch.hpp"

#include "support/catch.hpp"

namespace speedo {

namespace {

std::vector<Schedule> three_then_five() {
  std::vector<Schedule> stages(2);
  stages[0].strategy.name = "sync";
  stages[0].iterations = 3;
  stages[1].strategy.name = "async";
  stages[1].iterations = 5;
  return stages;
}

}  // namespace

TEST_CASE("stages are drained, entered and repeated, each for its iterations") {
  const auto stages = three_then_five();
  StageSwitch stage(stages, 0);
  CHECK(stage.trains_in_rounds());
  CHECK(!stage.is_over(2));
  REQUIRE(stage.is_over(3));
  stage.drain(3);
  CHECK(stage.is_draining());
  stage.enter(4);  // one more was merged while it drained
  CHECK(stage.is_entering());
  CHECK(stage.index() == 1);
  CHECK(stage.start() == 4);
  stage.entered();
  CHECK(stage.is_training());
  CHECK(!stage.trains_in_rounds());
  CHECK(!stage.is_over(8));
  stage.drain(9);
  stage.enter(9);
  stage.entered();
  CHECK(stage.number() == 2);
  CHECK(stage.index() == 0);
}

TEST_CASE("a training that begins later has the stages before behind it") {
  const auto stages = three_then_five();
  const auto begun_at = [&](std::uint64_t iteration) {
    const StageSwitch stage(stages, iteration);
    return std::pair(stage.number(), stage.start());
  };
  CHECK(begun_at(2) == std::pair<std::uint64_t, std::uint64_t>(0, 0));
  CHECK(begun_at(3) == std::pair<std::uint64_t, std::uint64_t>(1, 3));
  CHECK(begun_at(7) == std::pair<std::uint64_t, std::uint64_t>(1, 3));
  CHECK(begun_at(8) == std::pair<std::uint64_t, std::uint64_t>(2, 8));
  CHECK(begun_at(8'000'000'012) ==
        std::pair<std::uint64_t, std::uint64_t>(2'000'000'003, 8'000'000'011));
  auto ends_never = stages;
  ends_never[1].iterations = 0;
  CHECK(StageSwitch(ends_never, 1'000'000).start() == 3);
}

TEST_CASE("a stage without a number of iterations is never over") {
  const std::vector<Schedule> stages(1);
  const StageSwitch stage(stages, 0);
  CHECK(!stage.is_over(UINT64_MAX));
}

TEST_CASE("a restored stage goes on, or gives way to the next one if it has had its iterations") {
  const auto stages = three_then_five();
  StageSwitch goes_on(stages, 0);
  CHECK(!goes_on.restore(3, 20, 24));
  CHECK(goes_on.index() == 1);
  CHECK(goes_on.start() == 20);
  StageSwitch over(stages, 0);
  CHECK(over.restore(3, 20, 25));
  CHECK(over.number() == 4);
  CHECK(over.index() == 0);
  CHECK(over.start() == 25);
}

TEST_CASE("the rate follows the live workers and the iterations of the stage") {
  std::vector<Schedule> stages(1);
  stages[0].lr_scaling = LrScaling::kLinear;
  stages[0].lr_warmup = 10;
  const StageSwitch stage(stages, 5);
  CHECK(stage.rate_scale(10, 4) == 4.0F);
  CHECK(stage.rate_scale(10, 0) == 1.0F);
  CHECK(stage.rate_scale(5, 4) == 2.5F);
}

}  // namespace speedo
