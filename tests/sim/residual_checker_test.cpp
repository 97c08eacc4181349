// What the proof's checker of residuals takes for right, and for wrong.

#include "sim/check/residual_checker.hpp"

#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace speedo::sim {
namespace {

// A threshold of 1: entries of magnitude 1 or more are sent as 1.
struct Checked {
  Checked() {
    UpdateSpec update;
    update.kind = UpdateKind::kGradientOnly;
    update.codec = *parse_codec("threshold:1");
    checker.emplace(std::vector<UpdateSpec>{update}, violations);
    worker = checker->add_worker();
  }
  std::string run(std::uint64_t number, std::uint64_t merged, float computed, float sent) {
    TrainMessage order;
    order.run = number;
    order.merged_run = merged;
    checker->ordered(worker, order);
    checker->computed(worker, number, {computed});
    checker->contributed(number, {sent});
    return violations.check();
  }
  Violations violations;
  std::optional<ResidualChecker> checker;
  std::size_t worker = 0;
};

TEST_CASE("What a codec left out of a run that was merged goes with the next one") {
  Checked checked;
  REQUIRE(checked.run(1, kNoRun, 0.75F, 0.0F).empty());
  REQUIRE(checked.run(2, 1, 0.5F, 1.0F).empty());
  REQUIRE(checked.run(3, 2, 0.5F, 0.0F).empty());
}

TEST_CASE("What was kept back must not be lost, nor sent of a run that was not merged") {
  Checked lost;
  REQUIRE(lost.run(1, kNoRun, 0.75F, 0.0F).empty());
  CHECK(lost.run(2, 1, 0.5F, 0.0F) == "residuals");
  Checked unmerged;
  REQUIRE(unmerged.run(1, kNoRun, 0.75F, 0.0F).empty());
  CHECK(unmerged.run(2, kNoRun, 0.5F, 1.0F) == "residuals");
}

}  // namespace
}  // namespace speedo::sim
