#include <cmath>
#include <limits>

#include <speedo/train/schedule.hpp>

#include "support/catch.hpp"

namespace speedo {

namespace {

// A schedule with its name's defaults for four workers.
Schedule named(const char* name) {
  Schedule schedule;
  schedule.strategy.name = name;
  schedule.update = default_update(schedule.strategy, 4);
  return schedule;
}

Schedule with(Schedule schedule, void (*change)(Schedule&)) {
  change(schedule);
  return schedule;
}

std::string refusal(const Schedule& schedule) {
  const auto checked = check_schedule(schedule);
  REQUIRE(!checked);
  CHECK(checked.error().code == ErrorCode::kUsage);
  CHECK(checked.error().message.find('\n') == std::string::npos);
  return checked.error().message;
}

void refused(const Schedule& schedule, const char* reason) {
  const std::string message = refusal(schedule);
  INFO(message);
  CHECK(message.find(reason) != std::string::npos);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("names bring their defaults") {
  CHECK(default_update({.name = "async"}, 3) == UpdateSpec{});
  CHECK(default_update({.name = "sync"}, 3) == UpdateSpec{});
  CHECK(default_update({.name = "easgd"}, 3).moving_rate == Approx(0.3F));
  CHECK(default_update({.name = "eamsgd"}, 9).moving_rate == Approx(0.1F));
  CHECK(default_update({.name = "sync-easgd"}, 0).moving_rate == Approx(0.9F));
  CHECK(default_update({.name = "easgd"}, 1).steps_per_run == 1);
  CHECK(default_update({.name = "averaging"}, 2).steps_per_run == 5);
  CHECK(default_update({.name = "averaging"}, 2).updater == UpdaterState::kAverage);
  CHECK(default_update({.name = "unheard-of"}, 2) == UpdateSpec{});
}

TEST_CASE("every schedule is accepted with its defaults") {
  for (const StrategyEntry& entry : strategy_registry()) {
    INFO(entry.name);
    Schedule schedule = named(entry.name);
    const std::string name = entry.name;
    if (name == "partial-sync") schedule.strategy.max_advance = 1;
    if (name == "weedout") schedule.strategy.window = 1;
    CHECK(check_schedule(schedule));
  }
  CHECK(check_schedule(Schedule{}));
}

TEST_CASE("the axes compose where they mean something") {
  for (const char* name : {"async", "sync", "ssp", "grouping"}) {
    INFO(name);
    Schedule elastic = named(name);
    elastic.update.kind = UpdateKind::kElastic;
    for (const float rate : {1e-6F, 0.5F, 1.0F}) {
      elastic.update.moving_rate = rate;
      CHECK(check_schedule(elastic));
    }
    elastic.update.kind = UpdateKind::kElasticMaster;
    elastic.update.steps_per_run = 10;
    CHECK(check_schedule(elastic));
    Schedule gradients = named(name);
    gradients.update.kind = UpdateKind::kGradientOnly;
    CHECK(check_schedule(gradients));
  }
  for (const char* name : {"async", "ssp", "grouping", "easgd"}) {
    CHECK(check_schedule(with(named(name), [](Schedule& s) { s.weight_by_staleness = true; })));
  }
  for (const char* name : {"sync", "averaging"}) {
    CHECK(check_schedule(with(named(name), [](Schedule& s) {
      s.lr_scaling = LrScaling::kSqrt;
      s.lr_warmup = 100;
    })));
  }
  for (const UpdaterState updater :
       {UpdaterState::kKeep, UpdaterState::kAverage, UpdaterState::kReset}) {
    Schedule averaging = named("averaging");
    averaging.update.updater = updater;
    CHECK(check_schedule(averaging));
    averaging.strategy.name = "sync";
    CHECK(check_schedule(averaging));
  }
  CHECK(check_schedule(with(named("async"), [](Schedule& s) {
    s.update.factor = 4.0F;
    s.update.skip = 1e-6F;
    s.update.base_lr = 0.1F;
    s.update.momentum = 0.0F;
    s.update.weight_decay = 0.0F;
  })));
}

TEST_CASE("numbers out of range are refused by name") {
  for (const float rate : {-0.1F, 0.0F, 1.01F, kNan, kInfinity}) {
    Schedule schedule = named("easgd");
    schedule.update.moving_rate = rate;
    refused(schedule, "above 0 and at most 1");
  }
  Schedule schedule = named("async");
  const UpdateSpec fine = schedule.update;
  const auto refuse = [&](auto change, const char* reason) {
    schedule.update = fine;
    change(schedule.update);
    refused(schedule, reason);
  };
  refuse([](UpdateSpec& u) { u.steps_per_run = 0; }, "--train");
  for (const float factor : {0.0F, -1.0F, kNan, kInfinity}) {
    refuse([&](UpdateSpec& u) { u.factor = factor; }, "--factor");
  }
  for (const float bad : {-1.0F, kNan, kInfinity}) {
    refuse([&](UpdateSpec& u) { u.skip = bad; }, "--skip");
    refuse([&](UpdateSpec& u) { u.base_lr = bad; }, "--lr");
    refuse([&](UpdateSpec& u) { u.momentum = bad; }, "--momentum");
    refuse([&](UpdateSpec& u) { u.weight_decay = bad; }, "--weight-decay");
  }
  refuse([](UpdateSpec& u) { u.momentum = 1.0F; }, "--momentum");
}

TEST_CASE("strategies' own parameters: out of range, or another's") {
  refused(named("partial-sync"), "--max-advance");
  refused(named("weedout"), "--weedout");
  refused(named("nonsense"), "unknown strategy");
  refused(named("hybrid"), "--hybrid");
  Schedule schedule = named("async");
  schedule.strategy.window = 3;
  refused(schedule, "'weedout', not to 'async'");
  schedule.strategy = {.name = "psc", .max_advance = 2, .staleness = 2};
  refused(schedule, "'ssp', not to 'partial-sync'");
  schedule.strategy = {.name = "ssp", .max_advance = 2};
  refused(schedule, "--max-advance");
  schedule.strategy = {.name = "sync", .groups = {{"a"}}};
  refused(schedule, "'grouping'");
  schedule.strategy = {.name = "sync", .group_count = 2};
  refused(schedule, "'grouping'");
  schedule.strategy = {.name = "sync", .regroup_interval = 2};
  refused(schedule, "'grouping'");
}

TEST_CASE("elastic averaging excludes what changes deltas or gradients") {
  refused(with(named("easgd"), [](Schedule& s) { s.update.kind = UpdateKind::kGradientOnly; }),
          "elastic averaging");
  refused(with(named("sync-easgd"), [](Schedule& s) { s.update = {}; }), "use 'sync'");
  refused(with(named("async"), [](Schedule& s) { s.update.moving_rate = 0.5F; }), "--moving-rate");
  refused(with(named("easgd"), [](Schedule& s) { s.update.factor = 2.0F; }), "--factor");
  refused(with(named("easgd"), [](Schedule& s) { s.update.skip = 0.1F; }), "--skip");
  refused(with(named("averaging"),
               [](Schedule& s) {
                 s.update.kind = UpdateKind::kElastic;
                 s.update.moving_rate = 0.5F;
               }),
          "contradicts --moving-rate");
}

TEST_CASE("gradients come from one iteration and leave the updater with the master") {
  const Schedule gradients =
      with(named("sync"), [](Schedule& s) { s.update.kind = UpdateKind::kGradientOnly; });
  refused(with(gradients, [](Schedule& s) { s.update.steps_per_run = 2; }), "--train 2");
  refused(with(gradients, [](Schedule& s) { s.update.updater = UpdaterState::kReset; }), "updater");
  refused(with(gradients, [](Schedule& s) { s.update.factor = 2.0F; }), "--factor");
  refused(with(named("averaging"), [](Schedule& s) { s.update.kind = UpdateKind::kGradientOnly; }),
          "updater");
}

TEST_CASE("replicated updates need gradients in rounds, and nothing that only the master undoes") {
  Schedule replicated = with(named("sync"), [](Schedule& s) {
    s.update.kind = UpdateKind::kGradientOnly;
    s.update.replicated = true;
  });
  CHECK(check_schedule(replicated));
  refused(with(replicated, [](Schedule& s) { s.update.kind = UpdateKind::kFullDelta; }),
          "--sync --gradient-only");
  for (const char* name : {"async", "grouping", "ssp", "averaging"}) {
    refused(with(named(name), [](Schedule& s) { s.update.replicated = true; }), "--sync");
  }
  refused(with(replicated, [](Schedule& s) { s.update.codec.kind = CodecKind::kInt8; }),
          "--codec int8");
  refused(with(named("sync"), [](Schedule& s) { s.update.factors = false; }), "--no-factors");
}

TEST_CASE("what needs rounds is refused without them") {
  for (const UpdaterState updater : {UpdaterState::kAverage, UpdaterState::kReset}) {
    Schedule schedule = named("async");
    schedule.update.updater = updater;
    refused(schedule, "rounds");
  }
  for (const char* name : {"async", "grouping", "easgd"}) {
    refused(with(named(name), [](Schedule& s) { s.lr_scaling = LrScaling::kLinear; }),
            "--lr-scaling");
  }
  refused(with(named("sync-easgd"), [](Schedule& s) { s.lr_scaling = LrScaling::kLinear; }),
          "elastic");
  refused(with(named("sync"), [](Schedule& s) { s.lr_warmup = 10; }), "--lr-warmup");
  refused(with(named("averaging"), [](Schedule& s) { s.update.factor = 2.0F; }), "--factor");
}

TEST_CASE("updates say whether their stage trains in rounds") {
  const auto updates =
      updates_of({named("sync"), named("async"), named("ssp"), named("averaging")});
  REQUIRE(updates.size() == 4);
  CHECK(updates[0].in_rounds);
  CHECK(!updates[1].in_rounds);
  CHECK(!updates[2].in_rounds);
  CHECK(updates[3].in_rounds);
}

TEST_CASE("staleness has no weight where nothing is stale") {
  for (const char* name : {"sync", "sync-easgd", "averaging"}) {
    refused(with(named(name), [](Schedule& s) { s.weight_by_staleness = true; }),
            "every weight is 1");
  }
}

TEST_CASE("the rate follows the number of workers, after its warm-up") {
  Schedule schedule = named("sync");
  CHECK(lr_scale(schedule, 5, 8) == 1.0F);
  schedule.lr_scaling = LrScaling::kLinear;
  CHECK(lr_scale(schedule, 0, 8) == 8.0F);
  CHECK(lr_scale(schedule, 9, 0) == 1.0F);
  schedule.lr_warmup = 10;
  CHECK(lr_scale(schedule, 0, 8) == 1.0F);
  CHECK(lr_scale(schedule, 5, 8) == Approx(4.5F));
  CHECK(lr_scale(schedule, 10, 8) == 8.0F);
  CHECK(lr_scale(schedule, 10, 3) == 3.0F);
  schedule.lr_scaling = LrScaling::kSqrt;
  CHECK(lr_scale(schedule, 11, 9) == 3.0F);
  CHECK(lr_scale(schedule, 5, 9) == Approx(2.0F));
}

}  // namespace speedo
