// Local response normalization in every layout, the CPU backend against the reference.

#include <cmath>

#include "backend/conformance.hpp"
#include "cpu/isa.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/skip.hpp"

namespace speedo {
namespace {

using Region = LrnShape::Region;

// Batch, channels, h, w, size, alpha, beta, k.
std::vector<LrnShape> lrn_shapes() {
  const auto across = Region::kAcross, within = Region::kWithin;
  return {
      {across, 1, 1, 1, 1, 5, 1.0F, 0.75F, 1.0F, {}},
      {across, 2, 7, 5, 7, 3, 0.5F, 0.75F, 1.0F, {}},
      {across, 3, 16, 3, 43, 5, 1e-4F, 0.75F, 1.0F, {}},
      {across, 1, 5, 15, 20, 7, 2.0F, 0.5F, 2.0F, {}},
      {across, 2, 3, 8, 8, 9, 1.0F, 1.3F, 0.5F, {}},
      {across, 5, 32, 7, 7, 1, 1.0F, 0.75F, 1.0F, {}},
      {across, 2, 37, 5, 3, 5, 1.0F, 1.0F, 3.0F, {}},
      {across, 1, 50, 1, 1, 11, 3.0F, 0.75F, 1e-3F, {}},
      {within, 1, 1, 1, 1, 3, 1.0F, 0.75F, 1.0F, {}},
      {within, 2, 3, 5, 7, 3, 5e-5F, 0.75F, 1.0F, {}},
      {within, 2, 19, 8, 9, 3, 2.0F, 0.75F, 1.0F, {}},
      {within, 1, 5, 3, 2, 7, 1.0F, 0.5F, 1.0F, {}},  // a window larger than the image
      {within, 3, 16, 11, 6, 5, 3.0F, 1.0F, 1.0F, {}},
      {within, 1, 2, 40, 33, 3, 1.0F, 0.3F, 1.0F, {}},
      // Windows larger than all there is.
      {across, 2, 3, 4, 5, 25, 20.0F, 0.75F, 1.0F, {}},
      {across, 1, 20, 2, 3, 401, 400.0F, 0.75F, 1.0F, {}},
      {within, 1, 3, 1, 9, 101, 5e3F, 0.75F, 1.0F, {}},
      {within, 2, 17, 6, 1, 33, 1e3F, 0.75F, 2.0F, {}},
      {within, 1, 2, 7, 5, 51, 500.0F, 0.75F, 1.0F, {}},
  };
}

TEST_CASE("response normalization agrees with the reference in every layout") {
  LrnShape shape = GENERATE(from_range(lrn_shapes()));
  const ArrayShape array{shape.batch, shape.channels, shape.h * shape.w};
  const auto src = test_values(array, -3, 3, 1);
  const auto dst_grad = test_values(array, -1, 1, 2);
  for (const Layout layout : layouts_of(shape.channels)) {
    shape.layout = layout;
    CAPTURE(shape.channels, shape.h, shape.w, shape.size, shape.beta, layout.block);
    require_conforming_vectors(1e-6, [&](Workbench& bench) {
      auto lrn = bench.backend().make_lrn(shape);
      REQUIRE(lrn.has_value());
      float* dst = bench.blank_array(array, layout);
      (*lrn)->forward(bench.put_array(array, layout, src), dst);
      return bench.get_array(array, layout, dst);
    });
    require_conforming_vectors(2e-6, [&](Workbench& bench) {
      auto lrn = bench.backend().make_lrn(shape);
      REQUIRE(lrn.has_value());
      const float* source = bench.put_array(array, layout, src);
      float* dst = bench.blank_array(array, layout);
      float* src_grad = bench.blank_array(array, layout);
      (*lrn)->forward(source, dst);
      const BackwardReads reads = bench.backend().backward_reads(shape);
      (*lrn)->backward(reads.src ? source : nullptr, reads.dst ? dst : nullptr,
                       bench.put_array(array, layout, dst_grad), src_grad);
      return bench.get_array(array, layout, src_grad);
    });
  }
}

TEST_CASE("normalization keeps its digits beside a channel that is a million times larger") {
  LrnShape shape{Region::kAcross, 1, 12, 4, 10, 5, 1.0F, 0.75F, 1e-6F, {}};
  const ArrayShape array{1, 12, 40};
  auto src = test_values(array, 1e-3F, 2e-3F);
  for (std::size_t i = 0; i < 40; ++i) src[i] = 1000.0F;
  for (const Layout layout : layouts_of(12)) {
    shape.layout = layout;
    require_conforming_vectors(1e-5, [&](Workbench& bench) {
      auto lrn = bench.backend().make_lrn(shape);
      REQUIRE(lrn.has_value());
      float* dst = bench.blank_array(array, layout);
      (*lrn)->forward(bench.put_array(array, layout, src), dst);
      auto values = bench.get_array(array, layout, dst);
      // Channels whose window excludes the large one.
      values.erase(values.begin(), values.begin() + 3 * 40);
      return values;
    });
  }
}

TEST_CASE("kernels that every machine has normalize with the operations of IEEE 754 alone") {
  if (cpu_isa() != CpuIsa::kPortable) SPEEDO_SKIP("needs --cpu-isa portable");
  constexpr int kCount = 37;
  const float beta = GENERATE(0.5F, 0.75F);
  for (const float k : test_values(200, 0.1F, 30.0F)) {
    // The scale is k everywhere.
    const LrnShape shape{Region::kAcross, 1, 1, 1, kCount, 1, 0.0F, beta, k, {}};
    CAPTURE(k, beta);
    Workbench bench(test::make_backend(1));
    auto lrn = bench.backend().make_lrn(shape);
    REQUIRE(lrn.has_value());
    float* dst = bench.blank(kCount);
    (*lrn)->forward(bench.put(std::vector<float>(kCount, 1.0F)), dst);
    const float half = 1.0F / std::sqrt(k);
    const float factor = beta == 0.5F ? half : half * (1.0F / std::sqrt(k * half));
    CHECK(bench.get(dst, kCount) == std::vector<float>(kCount, factor));
  }
}

TEST_CASE("a scale of zero spoils no padding and no other channel") {
  LrnShape shape{Region::kAcross, 1, 5, 2, 2, 3, 1.0F, 0.75F, 0.0F, {}};
  const ArrayShape array{1, 5, 4};
  for (const Layout layout : layouts_of(5)) {
    shape.layout = layout;
    require_conforming_vectors(2e-6, [&](Workbench& bench) {
      auto lrn = bench.backend().make_lrn(shape);
      REQUIRE(lrn.has_value());
      const float* source = bench.put_array(array, layout, test_values(array, 1, 2));
      float* dst = bench.blank_array(array, layout);
      float* src_grad = bench.blank_array(array, layout);
      (*lrn)->forward(source, dst);
      (*lrn)->backward(source, dst, bench.put_array(array, layout, test_values(array)), src_grad);
      return join(bench.get_array(array, layout, dst), bench.get_array(array, layout, src_grad));
    });
  }
}

}  // namespace
}  // namespace speedo
