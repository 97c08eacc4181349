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

}  // namespace
}  // namespace speedo
