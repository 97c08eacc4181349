// Batch normalization in every layout, the CPU backend against the reference.

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/reference/relu_edge.hpp"

namespace speedo {
namespace {

// A sanitizer makes every value many times as dear.
#ifdef SPEEDO_SANITIZED
constexpr std::int64_t kLongRow = 2500, kManyValues = 40;
#else
constexpr std::int64_t kLongRow = 9000, kManyValues = 270;
#endif

std::vector<BatchNormShape> norm_shapes() {
  const auto make = [](std::int64_t batch, std::int64_t channels, std::int64_t spatial) {
    BatchNormShape shape;
    shape.batch = batch, shape.channels = channels, shape.spatial = spatial;
    return shape;
  };
  return {make(2, 1, 1),   make(3, 7, 35),  make(1, 16, 129),     make(4, 20, 49),
          make(64, 10, 1), make(2, 37, 17), make(2, 3, kLongRow), make(3, 130, kManyValues)};
}

struct Parameters {
  explicit Parameters(std::int64_t channels)
      : gamma(test_values(channels, -2, 2, 5)), beta(test_values(channels, -1, 1, 6)) {}
  std::vector<float> gamma, beta;
};

TEST_CASE("batch normalization agrees with the reference in every layout") {
  BatchNormShape shape = GENERATE(from_range(norm_shapes()));
  const int relu = GENERATE(0, 1, 2);
  if (relu > 0) shape.activation = UnaryOp{UnaryKind::kRelu, relu == 1 ? 0.0F : 0.125F};
  const bool scaled = GENERATE(true, false);
  const ArrayShape array{shape.batch, shape.channels, shape.spatial};
  const auto src = test_values(array, -1, 5, 1);
  const auto dst_grad = test_values(array, -1, 1, 2);
  const Parameters parameters(shape.channels);
  for (const Layout layout : layouts_of(shape.channels)) {
    shape.layout = layout;
    CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block, relu, scaled);
    const std::vector<float> fixed_variance = test_values(shape.channels, 0.5F, 3);
    const auto run = [&](Workbench& bench, bool fixed, bool backward) {
      shape.is_fixed = fixed;
      auto made = bench.backend().make_batch_norm(shape);
      REQUIRE(made.has_value());
      BatchNorm& norm = **made;
      const float* x = bench.put_array(array, layout, src);
      const float* gamma = scaled ? bench.put(parameters.gamma) : nullptr;
      const float* beta = scaled ? bench.put(parameters.beta) : nullptr;
      float* mean = fixed ? bench.put(parameters.beta) : bench.blank(shape.channels);
      float* variance =
          fixed ? bench.put(fixed_variance) : bench.blank(shape.channels);
      float* y = bench.blank_array(array, layout);
      if (fixed) {
        norm.forward_fixed(x, mean, variance, gamma, beta, y);
      } else {
        norm.forward(x, gamma, beta, mean, variance, y);
      }
      if (!backward) return bench.get_array(array, layout, y);
      // In place, and on top of what is there.
      std::vector<float> given = dst_grad;
      test::clear_at_relu_edge(shape,
                               {src.data(), scaled ? parameters.gamma.data() : nullptr,
                                scaled ? parameters.beta.data() : nullptr, parameters.beta.data(),
                                fixed_variance.data()},
                               given);
      float* grad = bench.put_array(array, layout, given);
      float* gamma_grad = bench.put(parameters.beta);
      float* beta_grad = bench.put(parameters.gamma);
      norm.backward({x, y, grad, mean, variance, gamma, grad, gamma_grad, beta_grad});
      const auto sums =
          join(bench.get(gamma_grad, shape.channels), bench.get(beta_grad, shape.channels));
      auto values = bench.get_array(array, layout, grad);
      // Sums over many numbers are large; the data's gradient is compared on its own scale.
      const auto count = static_cast<float>(shape.batch * shape.spatial);
      for (const float sum : sums) values.push_back(sum / count);
      return values;
    };
    for (const bool fixed : {false, true}) {
      // Two equal numbers have no variance: what remains of them is rounding.
      if (!fixed && shape.batch * shape.spatial == 2) continue;
      require_conforming_vectors(2e-6, [&](Workbench& d) { return run(d, fixed, false); });
      require_conforming_vectors(5e-6, [&](Workbench& d) { return run(d, fixed, true); });
    }
  }
}

// Of a backend that cannot, the same in three operations.
TEST_CASE("batch normalization adds another array before its activation") {
  BatchNormShape shape = GENERATE(from_range(norm_shapes()));
  if (shape.batch * shape.spatial == 2) return;
  const bool has_relu = GENERATE(true, false);
  shape.is_fixed = GENERATE(true, false);
  const bool in_place = GENERATE(true, false);
  const UnaryOp relu{UnaryKind::kRelu};
  const ArrayShape array{shape.batch, shape.channels, shape.spatial};
  const Parameters parameters(shape.channels);
  for (const Layout layout : layouts_of(shape.channels)) {
    shape.layout = layout;
    CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block, has_relu, in_place);
    const auto run = [&](Workbench& bench, bool backward) {
      BatchNormShape own = shape;
      own.adds = bench.backend().adds(Producer::kBatchNorm);
      if (own.adds && has_relu) own.activation = relu;
      auto made = bench.backend().make_batch_norm(own);
      REQUIRE(made.has_value());
      BatchNorm& norm = **made;
      const float* gamma = bench.put(parameters.gamma);
      const float* beta = bench.put(parameters.beta);
      float* mean = own.is_fixed ? bench.put(parameters.beta) : bench.blank(shape.channels);
      float* variance = own.is_fixed ? bench.put(test_values(shape.channels, 0.5F, 3))
                                     : bench.blank(shape.channels);
      const float* x = bench.put_array(array, layout, test_values(array, -1, 5, 1));
      float* addend = bench.put_array(array, layout, test_values(array, -2, 2, 3));
      float* y = own.adds && in_place ? addend : bench.blank_array(array, layout);
      if (own.adds) norm.add_next(addend);
      if (own.is_fixed) {
        norm.forward_fixed(x, mean, variance, gamma, beta, y);
      } else {
        norm.forward(x, gamma, beta, mean, variance, y);
      }
      const std::int64_t count = array.storage_count(layout);
      if (!own.adds) bench.backend().axpby(count, 1.0F, addend, 1.0F, y);
      if (!own.adds && has_relu) bench.backend().map(relu, count, y, y);
      if (!backward) return bench.get_array(array, layout, y);
      float* grad = bench.put_array(array, layout, test_values(array, -1, 1, 2));
      float* gamma_grad = bench.put(parameters.beta);
      float* beta_grad = bench.put(parameters.gamma);
      norm.backward({x, y, grad, mean, variance, gamma, grad, gamma_grad, beta_grad});
      return bench.get_array(array, layout, grad);
    };
    require_conforming_vectors(2e-6, [&](Workbench& d) { return run(d, false); });
    require_conforming_vectors(5e-6, [&](Workbench& d) { return run(d, true); });
  }
}

TEST_CASE("running statistics are what was added up, by its weight") {
  const std::int64_t channels = GENERATE(1, 5, 37, 300);
  const float weight = GENERATE(0.0F, 1.0F, 3.75F);
  require_conforming_vectors(1e-7, [&](Workbench& bench) {
    const std::vector<float> weights(1, weight);
    float* mean = bench.blank(channels);
    float* variance = bench.blank(channels);
    bench.backend().read_running({.channels = channels,
                                  .mean_sum = bench.put(test_values(channels, -2, 2, 1)),
                                  .variance_sum = bench.put(test_values(channels, 0, 4, 2)),
                                  .weight = bench.put(weights),
                                  .mean = mean,
                                  .variance = variance});
    return join(bench.get(mean, channels), bench.get(variance, channels));
  });
}

TEST_CASE("batch normalization works without gradients of its parameters, and in place") {
  BatchNormShape shape;
  shape.batch = 3, shape.channels = 5, shape.spatial = 4;
  const ArrayShape array{3, 5, 4};
  for (const Layout layout : layouts_of(5)) {
    shape.layout = layout;
    shape.trains = false;
    require_conforming_vectors(2e-6, [&](Workbench& bench) {
      auto norm = bench.backend().make_batch_norm(shape);
      REQUIRE(norm.has_value());
      float* mean = bench.blank(5);
      float* variance = bench.blank(5);
      float* x = bench.put_array(array, layout, test_values(array));
      float* y = bench.put_array(array, layout, test_values(array));
      (*norm)->forward(y, nullptr, nullptr, mean, variance, y);
      float* grad = bench.blank_array(array, layout);
      (*norm)->backward({x, nullptr, y, mean, variance, nullptr, grad, nullptr, nullptr});
      return join(bench.get_array(array, layout, y), bench.get_array(array, layout, grad));
    });
  }
}

TEST_CASE("with fixed statistics batch normalization may be trained through in place") {
  BatchNormShape shape;
  shape.batch = 3, shape.channels = 5, shape.spatial = 14;
  shape.activation = UnaryOp{UnaryKind::kRelu};
  shape.is_fixed = true;
  shape.trains_gamma = false;
  const ArrayShape array{3, 5, 14};
  for (const Layout layout : layouts_of(5)) {
    shape.layout = layout;
    require_conforming_vectors(2e-6, [&](Workbench& bench) {
      auto norm = bench.backend().make_batch_norm(shape);
      REQUIRE(norm.has_value());
      const float* mean = bench.put(test_values(5));
      const float* variance = bench.put(test_values(5, 1, 2));
      float* x = bench.put_array(array, layout, test_values(array));
      (*norm)->forward_fixed(x, mean, variance, nullptr, nullptr, x);
      float* grad = bench.put_array(array, layout, test_values(array, -1, 1, 3));
      CHECK(bench.backend().backward_reads(shape) == BackwardReads{.src = false, .dst = true});
      (*norm)->backward({nullptr, x, grad, mean, variance, nullptr, grad, nullptr, nullptr});
      return bench.get_array(array, layout, grad);
    });
  }
}

TEST_CASE("statistics keep their digits when the mean is far from zero") {
  BatchNormShape shape = GENERATE(from_range(norm_shapes()));
  if (shape.batch * shape.spatial < 10) return;
  const ArrayShape array{shape.batch, shape.channels, shape.spatial};
  const auto src = test_values(array, 999, 1001);
  for (const Layout layout : layouts_of(shape.channels)) {
    shape.layout = layout;
    for (const bool of_variance : {false, true}) {
      require_conforming_vectors(of_variance ? 2e-6 : 1e-7, [&](Workbench& bench) {
        auto norm = bench.backend().make_batch_norm(shape);
        REQUIRE(norm.has_value());
        float* mean = bench.blank(shape.channels);
        float* variance = bench.blank(shape.channels);
        (*norm)->forward(bench.put_array(array, layout, src), nullptr, nullptr, mean, variance,
                         bench.blank_array(array, layout));
        return bench.get(of_variance ? variance : mean, shape.channels);
      });
    }
  }
}

TEST_CASE("statistics are the same with any number of threads", "[cpu]") {
  BatchNormShape shape = GENERATE(from_range(norm_shapes()));
  const ArrayShape array{shape.batch, shape.channels, shape.spatial};
  for (const Layout layout : layouts_of(shape.channels)) {
    shape.layout = layout;
    const auto run = [&](int threads) {
      Workbench bench(test::make_backend(threads));
      auto norm = bench.backend().make_batch_norm(shape);
      REQUIRE(norm.has_value());
      float* mean = bench.blank(shape.channels);
      float* variance = bench.blank(shape.channels);
      (*norm)->forward(bench.put_array(array, layout, test_values(array)), nullptr, nullptr, mean,
                       variance, bench.blank_array(array, layout));
      return join(bench.get(mean, shape.channels), bench.get(variance, shape.channels));
    };
    const auto one = run(1);
    REQUIRE(run(2) == one);
    REQUIRE(run(3) == one);
  }
}

}  // namespace
}  // namespace speedo
