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
  StageSwitch stage(stages, 10);
  CHECK(stage.trains_in_rounds());
  CHECK(!stage.is_over(12));
  REQUIRE(stage.is_over(13));
  stage.drain(13);
  CHECK(stage.is_draining());
  stage.enter(14);  // one more was merged while it drained
  CHECK(stage.is_entering());
  CHECK(stage.index() == 1);
  CHECK(stage.start() == 14);
  stage.entered();
  CHECK(stage.is_training());
  CHECK(!stage.trains_in_rounds());
  CHECK(!stage.is_over(18));
  stage.drain(19);
  stage.enter(19);
  stage.entered();
  CHECK(stage.number() == 2);
  CHECK(stage.index() == 0);
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
  const StageSwitch stage(stages, 5);
  CHECK(stage.rate_scale(5, 4) == 4.0F);
  CHECK(stage.rate_scale(5, 0) == 1.0F);
}

}  // namespace speedo
