#include "train/replicas/factor_plan.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

// CaffeNet's fc6 at batch 32: 32 rows of 4096 + 9216 floats, 1.7 MB, against 151 MB.
constexpr FactorShape kFc6{.slot = 0, .rows = 32, .height = 4096, .width = 9216};

TEST_CASE("factors are chosen while all workers' are fewer bytes than gradient and mean") {
  const std::vector<FactorShape> possible{kFc6};
  CHECK(gradient_bytes(kFc6) == 2.0 * 4 * 4096 * 9216);
  CHECK(factor_bytes(kFc6, 3) == 4.0 * 4 * 32 * (4096 + 9216));
  CHECK(choose_factors(possible, 2) == possible);
  // 2 * 4096 * 9216 / (32 * 13312) = 177.2 copies are as many bytes.
  CHECK(choose_factors(possible, 176) == possible);
  CHECK(choose_factors(possible, 177).empty());
  CHECK(choose_factors({}, 2).empty());
  const UpdateSpec with{.kind = UpdateKind::kGradientOnly, .replicated = true};
  const UpdateSpec without{
      .kind = UpdateKind::kGradientOnly, .replicated = true, .factors = false};
  CHECK(any_factors(std::vector{without, with}, possible, 2));
  CHECK_FALSE(any_factors(std::vector{without, with}, possible, 177));
  CHECK_FALSE(any_factors(std::vector{without, UpdateSpec{}}, possible, 2));
}

TEST_CASE("what was chosen is said with its bytes") {
  ParameterLayout layout;
  layout.add({.layer = "fc6", .name = {}, .shape = Shape::create({4096, 9216}).value()});
  CHECK(describe_factors(layout, std::vector{kFc6}, 4) ==
        "fc6 as factors: 8.1 MiB instead of 288 MiB a worker and round");
  CHECK(describe_factors(layout, {}, 4) == "no gradients as factors");
}

}  // namespace
}  // namespace speedo
