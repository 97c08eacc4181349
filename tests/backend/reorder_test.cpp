// Copies between layouts, the CPU backend against the reference.

#include "backend/conformance.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("arrays keep their values from any layout to any other") {
  const ArrayShape shape = GENERATE(
      ArrayShape{1, 1, 1}, ArrayShape{2, 3, 5}, ArrayShape{3, 16, 49}, ArrayShape{64, 500, 1},
      ArrayShape{2, 20, 144}, ArrayShape{5, 37, 11}, ArrayShape{1, 130, 64}, ArrayShape{2, 3, 5000},
      ArrayShape{0, 4, 3}, ArrayShape{2, 24, 300}, ArrayShape{3, 8, 7}, ArrayShape{2, 40, 17});
  auto layouts = layouts_of(shape.channels);
  layouts.push_back({24});
  for (const Layout from : layouts) {
    for (const Layout to : layouts) {
      CAPTURE(shape.batch, shape.channels, shape.spatial, from.block, to.block);
      require_conforming_vectors(0.0, [&](Workbench& bench) {
        float* target = bench.blank_array(shape, to);
        bench.backend().reorder(shape, bench.put_array(shape, from, test_values(shape)), from,
                                target, to);
        return bench.get_array(shape, to, target);
      });
    }
  }
}

}  // namespace
}  // namespace speedo
