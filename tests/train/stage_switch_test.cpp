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
  CHECK(stage.enter(4) == 0);  // one more was merged while it drained
  CHECK(stage.is_entering());
  CHECK(stage.index() == 1);
  CHECK(stage.start() == 3);
  stage.entered();
  CHECK(stage.is_training());
  CHECK(!stage.trains_in_rounds());
  CHECK(!stage.is_over(7));
  stage.drain(8);
  CHECK(stage.enter(8) == 0);
  stage.entered();
  CHECK(stage.number() == 2);
  CHECK(stage.index() == 0);
}

TEST_CASE("an iteration belongs to its stage, whichever has merged it") {
  auto stages = three_then_five();
  const StageSwitch first(stages, 0);
  std::string names;
  for (std::uint64_t i = 1; i <= 12; ++i) names += first.schedule_of(i).strategy.name[0];
  CHECK(names == "sssaaaaasssa");
  CHECK(&StageSwitch(stages, 3).schedule_of(4) == &stages[1]);
}

TEST_CASE("a stage whose iterations were merged while the one before drained is left out") {
  const auto stages = three_then_five();
  const auto entered_at = [&](std::uint64_t iteration) {
    StageSwitch stage(stages, 0);
    stage.drain(3);
    const std::uint64_t left_out = stage.enter(iteration);
    const StageSwitch begun(stages, iteration);
    CHECK(stage.number() == begun.number());
    CHECK(stage.start() == begun.start());
    return std::pair(left_out, stage.start());
  };
  CHECK(entered_at(7) == std::pair<std::uint64_t, std::uint64_t>(0, 3));
  CHECK(entered_at(8) == std::pair<std::uint64_t, std::uint64_t>(1, 8));
  CHECK(entered_at(10) == std::pair<std::uint64_t, std::uint64_t>(1, 8));
  CHECK(entered_at(11) == std::pair<std::uint64_t, std::uint64_t>(2, 11));
  CHECK(entered_at(83) == std::pair<std::uint64_t, std::uint64_t>(20, 83));
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
  CHECK(over.restore(3, 20, 27));
  CHECK(over.number() == 4);
  CHECK(over.index() == 0);
  CHECK(over.start() == 25);
  StageSwitch left_out(stages, 0);
  CHECK(left_out.restore(3, 20, 28));
  CHECK(left_out.number() == 5);
  CHECK(left_out.start() == 28);
  StageSwitch damaged(stages, 0);
  CHECK(damaged.restore(3, 20, std::uint64_t{1} << 62U));
  CHECK(!damaged.is_over(std::uint64_t{1} << 62U));
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
