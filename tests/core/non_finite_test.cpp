#include "core/non_finite.hpp"

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <speedo/core/solver.hpp>

#include "core/net_support.hpp"
#include "core/solver_support.hpp"

namespace speedo {
namespace {

constexpr const char* kConvNet =
    "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 2 dim: 3 dim: 8 "
    "dim: 8 } } }\n"
    "layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 2 } } }\n"
    "layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' convolution_param { "
    "num_output: 16 kernel_size: 3 weight_filler { type: 'msra' } } }\n"
    "layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }\n"
    "layer { name: 'square' type: 'Power' bottom: 'conv' top: 'square' power_param { power: 2 } }\n"
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'square' top: 'ip' inner_product_param { "
    "num_output: 3 weight_filler { type: 'msra' } } }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";

TEST_CASE("the layer and blob that were not finite first are named", "[solver]") {
  const auto net = make_net(kConvNet);
  std::vector<float> images(2 * 3 * 8 * 8, 0.5F);
  net->blob("data")->set_values(test_backend(), images);
  CHECK(find_non_finite_values(*net, 1).value().empty());

  images.assign(images.size(), 1e30F);
  net->blob("data")->set_values(test_backend(), images);
  CHECK(find_non_finite_values(*net, 2).value() == "blob 'square' of layer 'square'");

  images[7] = std::numeric_limits<float>::quiet_NaN();
  net->blob("data")->set_values(test_backend(), images);
  CHECK(find_non_finite_values(*net, 1).value() == "blob 'data' of layer 'data'");
}

TEST_CASE("weights and gradients that are not finite are named by their layers", "[solver]") {
  const auto net = make_net(kConvNet);
  const Bucket all{0, net->layout().element_count()};
  net->clear_gradients();
  CHECK(find_non_finite_gradients(*net, all).empty());
  const float bad = std::numeric_limits<float>::infinity();
  const auto spoil = [&](Arena& arena, std::size_t slot) {
    const std::int64_t at = net->layout().slots()[slot].offset;
    test_backend().device().upload(arena.data() + at, std::span(&bad, 1));
    return at;
  };
  const std::int64_t first = spoil(net->gradients(), 1);
  CHECK(find_non_finite_gradients(*net, all) ==
        "the gradient of layer 'conv' (parameter 1)");
  CHECK(find_non_finite_gradients(*net, {0, first}).empty());
  spoil(net->gradients(), 2);
  CHECK(find_non_finite_gradients(*net, all) == "the gradient of layer 'ip' (parameter 0)");
  spoil(net->weights(), 2);
  CHECK(find_non_finite_values(*net, 1).value() == "the weights of layer 'ip' (parameter 0)");
}

TEST_CASE("as many losses in a row as were allowed end training, and the cause is named",
          "[solver]") {
  for (const int max : {1, 3}) {
    INFO(max);
    test::World world;
    SolverOptions options = world.options();
    options.non_finite_max = max;
    const auto solver = Solver::create(test::small_solver("", "broken"), options, {});
    REQUIRE(solver);
    const Result<void> result = (*solver)->solve();
    REQUIRE_FALSE(result);
    INFO(result.error().message);
    CHECK(result.error().code == ErrorCode::kNotFinite);
    CHECK((*solver)->iteration() == 3 + max - 1);
    CHECK(result.error().message.find("first not finite is blob 'data' of layer 'data'") !=
          std::string::npos);
  }
}

TEST_CASE("looking for the cause leaves no trace in what follows", "[solver]") {
  test::World world;
  std::vector<float> losses;
  Solver::Hooks hooks;
  hooks.progress = [&](std::int64_t, float loss) { losses.push_back(loss); };
  const auto solver = world.solver(test::small_solver("", "broken once"), std::move(hooks));
  REQUIRE(solver->step(6));
  CHECK_FALSE(std::isfinite(losses[3]));

  test::World other;
  std::vector<float> sound;
  Solver::Hooks listens;
  listens.progress = [&](std::int64_t, float loss) { sound.push_back(loss); };
  const auto undisturbed = other.solver(test::small_solver(), std::move(listens));
  REQUIRE(undisturbed->step(3));
  CHECK(std::vector(losses.begin(), losses.begin() + 3) == sound);
  CHECK(std::isfinite(losses[4]));
}

}  // namespace
}  // namespace speedo
