// Parts that are wrong in one way each: the checkers must notice all of them, soon.

#include <string>

#include "support/broken_strategies.hpp"
#include "support/catch.hpp"

#include "proof_support.hpp"

namespace speedo::sim {
namespace {

constexpr std::uint64_t kSeeds = 100;

// The first seed that finds something, and what; 0 if none does.
std::pair<std::uint64_t, std::string> first_violation(const ProofParts& parts,
                                                      const std::string& name) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const ProofResult result = run_proof(draw_scenario(seed, {name}, {2, 64}), parts);
    if (!result.violation.empty()) return {seed, result.violation};
  }
  return {0, ""};
}

}  // namespace

TEST_CASE("every broken strategy is caught within a hundred seeds") {
  for (const BrokenStrategy& broken : broken_strategies()) {
    ProofParts parts = real_parts();
    parts.make_strategy =
        [&](const StrategyOptions& options) -> Result<std::unique_ptr<Strategy>> {
      return broken.make(options);
    };
    const auto [seed, violation] = first_violation(parts, broken.instead_of);
    INFO(broken.name << ": seed " << seed << ": " << violation);
    CHECK(seed != 0);
  }
}

TEST_CASE("a store that lets a stale master write is caught within a hundred seeds") {
  ProofParts parts = real_parts();
  parts.fences = false;
  const auto [seed, violation] = first_violation(parts, "async");
  INFO("seed " << seed << ": " << violation);
  CHECK(seed != 0);
}

TEST_CASE("a violation comes with the last events before it") {
  ProofParts parts = real_parts();
  parts.make_strategy =
      [](const StrategyOptions& options) -> Result<std::unique_ptr<Strategy>> {
    return make_broken("merge-twice", options);
  };
  const ProofResult result = run_proof(draw_scenario(1, {"async"}, {2, 4}), parts);
  REQUIRE(!result.violation.empty());
  CHECK(result.last_events.size() == 50);
}

}  // namespace speedo::sim
