// Buckets on their way from a device that does nothing before somebody waits.
#include "train/trainer/buckets_ahead.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "support/catch.hpp"
#include "support/gpu/gpu_double.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kFloats = 15007;
// As a net reports them, the last layer's first; rows of sums end within each.
const std::vector<Bucket> kBuckets{{10000, 5007}, {5000, 5000}, {0, 5000}};

struct Bench {
  Bench(std::uint64_t seed, bool shares)
      : backend(test::make_gpu_double(seed)),
        host(backend->device(), kFloats, shares),
        gradients(test::value_of(Arena::create(*backend, kFloats))),
        weights(test::value_of(Arena::create(*backend, kFloats))),
        ahead(test::value_of(BucketsAhead::create(*backend, host, kFloats,
                                                  std::ssize(kBuckets)))) {}

  // Makes the bucket's weights twice its gradients, all of them `value` and one `odd`, and uses
  // the gradients' memory for something else.
  void step(const Bucket& bucket, float value, float odd) {
    float* const part = gradients.data() + bucket.offset;
    backend->fill(bucket.count, value, part);
    backend->fill(1, odd, part + bucket.count - 1);
    ahead->look_at(bucket, part);
    backend->axpby(bucket.count, 2.0F, part, 0.0F, weights.data() + bucket.offset);
    ahead->fetch();
    backend->fill(bucket.count, -1.0F, part);
  }

  const std::unique_ptr<Backend> backend;
  HostView host;
  Arena gradients, weights;
  const std::unique_ptr<BucketsAhead> ahead;
};

TEST_CASE("buckets come in order, as they were, with whether their gradients were finite") {
  const auto seed = GENERATE(std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2});
  const bool shares = GENERATE(false, true);
  Bench bench(seed, shares);
  REQUIRE(bench.ahead->begin(bench.weights));
  constexpr float kHuge = 1e37F;  // a row of which has no finite sum
  bench.step(kBuckets[0], 1.0F, 3.0F);
  bench.step(kBuckets[1], 2.0F, std::numeric_limits<float>::quiet_NaN());
  bench.step(kBuckets[2], kHuge, 0.0F);
  std::vector<Bucket> came;
  std::vector<bool> finite;
  bench.ahead->pass_on(true, [&](const Bucket& bucket, bool is_finite) {
    came.push_back(bucket);
    finite.push_back(is_finite);
    const std::span<const float> part =
        bench.host.part(bench.weights, static_cast<std::size_t>(bucket.offset),
                        static_cast<std::size_t>(bucket.count));
    const float expected = std::vector{2.0F, 4.0F, 2.0F * kHuge}[came.size() - 1];
    CHECK(std::ranges::count(part, expected) == bucket.count - 1);
  });
  CHECK(came == kBuckets);
  CHECK(finite == std::vector{true, false, true});
}

TEST_CASE("buckets that are not wanted leave the memory to others") {
  Bench bench(GENERATE(std::uint64_t{0}, std::uint64_t{1}), GENERATE(false, true));
  for (const float value : {1.0F, 2.0F}) {
    REQUIRE(bench.ahead->begin(bench.weights));
    for (const Bucket& bucket : kBuckets) bench.step(bucket, value, value);
    bench.ahead->drop();
    std::ranges::fill(bench.host.landing(bench.weights), 7.0F);
    bench.host.land(bench.weights);
    CHECK(bench.host.part(bench.weights, 5000, 2)[1] == 7.0F);
  }
}

TEST_CASE("nothing is copied ahead where the arena is the host's") {
  const auto backend = make_cpu_backend(1);
  HostView host(backend->device(), kFloats, false);
  Arena weights = test::value_of(Arena::create(*backend, kFloats));
  CHECK_FALSE(host.begin_ahead(weights));
}

TEST_CASE("workers whose buckets are copied ahead contribute what others do") {
  if (test::kernel_choice().shared_memory) SPEEDO_SKIP("a device beside the host is the subject");
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly,
                                   UpdateKind::kElastic, UpdateKind::kElasticMaster);
  const auto steps = GENERATE(std::uint32_t{1}, std::uint32_t{2});
  if (kind == UpdateKind::kGradientOnly && steps > 1) return;
  const std::string clipped = GENERATE("", " clip_gradients: 0.5");
  JobSpec job{.solver_text = test::generated_solver(
                  8, "base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 random_seed: 1" + clipped,
                  false),
              .base = {}};
  job.stages.front() = {.kind = kind, .steps_per_run = steps, .moving_rate = 0.3F};
  CAPTURE(static_cast<int>(kind), steps, clipped);
  const auto log = std::make_shared<test::CallLog>();
  std::vector<float> weights;
  {
    test::TrainerCluster::Options options;
    options.parts.make_backend = [log]() -> Result<std::unique_ptr<Backend>> {
      return test::make_gpu_double(log);
    };
    test::TrainerCluster ahead(job, 2, options);
    for (int round = 0; round < 3; ++round) ahead.round();
    weights = ahead.weights();
  }
  test::TrainerCluster plain(job, 2);
  for (int round = 0; round < 3; ++round) plain.round();
  CHECK(test::relative_difference(weights, plain.weights()) < 1e-4);
  // A norm of the whole gradient has to be known first, by whoever has the rule.
  const bool is_ahead = clipped.empty() || kind == UpdateKind::kGradientOnly;
  CHECK((log->kernels("reduce_rows") > 0) == is_ahead);
  const std::vector<std::string> violations = log->violations();
  CAPTURE(violations);
  CHECK(violations.empty());
}

}  // namespace
}  // namespace speedo
