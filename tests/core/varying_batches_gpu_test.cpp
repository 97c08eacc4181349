// Batches of several shapes on the GPU's double, and on a GPU where there is one.

#include <speedo/gpu/gpu_backend.hpp>

#include "core/solver_support.hpp"
#include "images_of_sizes.hpp"
#include "support/gpu/gpu_double.hpp"
#include "support/random_seed.hpp"
#include "support/skip.hpp"

namespace speedo {
namespace {

TEST_CASE("images of several sizes are computed by GPU kernels as each alone", "[net]") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  Random random(seed);
  const auto log = std::make_shared<test::CallLog>();
  {
    const auto backend = test::make_gpu_double(log, {}, gpu::Arithmetic::kFloat32);
    require_each_as_alone(*backend, random);
    require_steady_beside_varying(*backend);
  }
  CHECK(log->violations() == std::vector<std::string>());
}

TEST_CASE("an image that memory does not hold is an error each time, and others go on", "[net]") {
  const auto log = std::make_shared<test::CallLog>();
  {
    const auto backend = test::make_gpu_double(log, {.capacity = std::size_t{56} << 20U});
    ImagesOfSizesFactory feeds({{{8, 8}, {900, 900}, {900, 900}, {9, 8}}});
    const auto net = make_net(segmentation_net(), options_with(feeds, *backend));
    REQUIRE(net->forward().has_value());
    for (std::uint64_t batch = 1; batch < 3; ++batch) {
      net->set_batch_span({.first = batch});
      const auto refused = net->forward();
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == ErrorCode::kFull);
    }
    net->set_batch_span({.first = 3});
    const auto passed = net->forward();
    INFO((passed ? "" : passed.error().message));
    CHECK(passed.has_value());
  }
  CHECK(log->violations() == std::vector<std::string>());
}

std::vector<float> train(const std::string& fields, const std::shared_ptr<test::CallLog>& log) {
  const auto backend = test::make_gpu_double(log, {.seed = 3});
  ImagesOfSizesFactory feeds({{{8, 8}, {12, 7}, {9, 16}}});
  SolverOptions options;
  options.backend = backend.get();
  options.feeds = &feeds;
  const auto solver = Solver::create(
      test::parse_solver(test::kSolverText + fields + " net_param { " + segmentation_net() + " }"),
      options, {});
  INFO((solver ? "" : solver.error().message));
  REQUIRE(solver.has_value());
  REQUIRE((*solver)->step(7).has_value());
  return test::weights_of(**solver);
}

TEST_CASE("quiet iterations over images of several sizes leave what others leave", "[solver]") {
  set_log_level(LogLevel::kNothing);
  const std::string passes = GENERATE("iter_size: 1", "iter_size: 2");
  const auto quiet = std::make_shared<test::CallLog>(), loud = std::make_shared<test::CallLog>();
  CHECK(train(passes, quiet) == train(passes + " display: 1", loud));
  CHECK(quiet->kernels("note_step") > 0);
  CHECK(loud->kernels("note_step") == 0);
  CHECK(quiet->violations() == std::vector<std::string>());
}

TEST_CASE("images of several sizes on a GPU", "[net]") {
  const auto devices = gpu_devices();
  if (!devices) SPEEDO_SKIP(devices.error().message);
  const auto backend = make_gpu_backend({});
  REQUIRE(backend.has_value());
  Random random(3);
  require_each_as_alone(**backend, random);
}

}  // namespace
}  // namespace speedo
