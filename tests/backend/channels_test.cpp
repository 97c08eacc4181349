// Arithmetic per channel in every layout, the CPU backend against the reference.

#include "backend/conformance.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

std::vector<ArrayShape> channel_shapes() {
  return {{1, 1, 1},   {2, 3, 5},    {3, 16, 49},   {64, 500, 1}, {2, 20, 144},
          {5, 37, 11}, {1, 130, 64}, {2, 1, 40009}, {0, 4, 3},    {2, 24, 3000}};
}

TEST_CASE("channels are scaled and shifted as in the reference") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const auto x = test_values(shape);
  const auto gamma = test_values(shape.channels, -2, 2, 3);
  const auto beta = test_values(shape.channels, -1, 1, 4);
  for (const Layout layout : layouts_of(shape.channels)) {
    CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block);
    for (const int given : {0, 1, 2, 3}) {
      require_conforming_vectors(5e-7, [&](Workbench& bench) {
        const float* scale = (given & 1) != 0 ? bench.put(gamma) : nullptr;
        const float* shift = (given & 2) != 0 ? bench.put(beta) : nullptr;
        const float* source = bench.put_array(shape, layout, x);
        float* y = bench.blank_array(shape, layout);
        float* in_place = bench.put_array(shape, layout, x);
        bench.backend().scale_channels({shape, layout}, {scale, shift}, source, y);
        bench.backend().scale_channels({shape, layout}, {scale, shift}, in_place, in_place);
        return join(bench.get_array(shape, layout, y), bench.get_array(shape, layout, in_place));
      });
    }
  }
}

TEST_CASE("channels are summed as in the reference") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const auto before = test_values(shape.channels, -1, 1, 4);
  for (const Layout layout : layouts_of(shape.channels)) {
    CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block);
    for (const int wanted : {1, 2, 3}) {
      require_conforming_vectors(5e-7, [&](Workbench& bench) {
        const bool gamma = (wanted & 1) != 0, beta = (wanted & 2) != 0;
        const float* x = bench.put_array(shape, layout, test_values(shape, 0, 1));
        const float* y_grad = bench.put_array(shape, layout, test_values(shape, 0, 2, 2));
        float* gamma_grad = bench.put(before);
        float* beta_grad = bench.put(before);
        bench.backend().sum_channels({shape, layout}, gamma ? x : nullptr, y_grad,
                                     gamma ? gamma_grad : nullptr, beta ? beta_grad : nullptr);
        return join(bench.get(gamma_grad, shape.channels), bench.get(beta_grad, shape.channels));
      });
    }
  }
}

TEST_CASE("PReLU agrees with the reference") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const auto slope = test_values(shape.channels, -0.5F, 0.5F, 3);
  for (const Layout layout : layouts_of(shape.channels)) {
    CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block);
    require_conforming_vectors(1e-7, [&](Workbench& bench) {
      const float* source = bench.put_array(shape, layout, test_values(shape));
      float* y = bench.blank_array(shape, layout);
      bench.backend().prelu_forward({shape, layout}, bench.put(slope), source, y);
      return bench.get_array(shape, layout, y);
    });
    require_conforming_vectors(5e-7, [&](Workbench& bench) {
      const float* source = bench.put_array(shape, layout, test_values(shape));
      float* grad = bench.put_array(shape, layout, test_values(shape, 0, 1, 2));
      float* slope_grad = bench.put(slope);
      bench.backend().prelu_backward({shape, layout}, bench.put(slope), source, grad, nullptr,
                                     slope_grad);
      bench.backend().prelu_backward({shape, layout}, bench.put(slope), source, grad, grad,
                                     slope_grad);
      return join(bench.get_array(shape, layout, grad), bench.get(slope_grad, shape.channels));
    });
  }
}

TEST_CASE("dropout masks are those of the reference, and the same in every layout") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const float ratio = GENERATE(0.0F, 0.4F, 0.999F);
  const std::uint64_t seed = GENERATE(0xfeedbeefULL, ~std::uint64_t{0} - 100);
  std::vector<float> plain;
  for (const Layout layout : layouts_of(shape.channels)) {
    CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block, ratio);
    const auto make = [&](Workbench& bench) {
      float* mask = bench.blank_array(shape, layout);
      bench.backend().dropout_mask({shape, layout}, ratio, seed, mask);
      return bench.get_array(shape, layout, mask);
    };
    require_conforming_vectors(0.0, make);
    Workbench bench(test::make_backend(2));
    const std::vector<float> mask = make(bench);
    if (plain.empty()) plain = mask;
    CHECK((mask == plain));
  }
}

TEST_CASE("the dropout share is the ratio") {
  const std::int64_t block = GENERATE(1, 16);
  const ArrayShape shape{1, 100, 1000};
  Workbench bench(test::make_backend(2));
  float* mask = bench.blank_array(shape, {block});
  bench.backend().dropout_mask({shape, {block}}, 0.3F, 77, mask);
  double kept = 0.0;
  for (const float value : bench.get_array(shape, {block}, mask)) kept += value > 0.0F ? 1.0 : 0.0;
  REQUIRE(kept == Approx(70000.0).margin(700.0));
}

}  // namespace
}  // namespace speedo
