// Memory that operations share, and more of it than there is.

#include <limits>

#include "backend/conformance.hpp"
#include "cpu/memory.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

void require_full(const Result<void>& result) {
  REQUIRE_FALSE(result.has_value());
  REQUIRE(result.error().code == ErrorCode::kFull);
  REQUIRE(result.error().message.find("no memory for") != std::string::npos);
}

TEST_CASE("scratch memory that no machine has is refused, however much it is") {
  const std::int64_t floats = GENERATE(std::int64_t{1} << 45U, std::int64_t{1} << 61U,
                                       std::numeric_limits<std::int64_t>::max());
  cpu::Scratch scratch(2);
  scratch.reserve(64, 32);
  REQUIRE(scratch.bytes() == (2 * 64 + 32) * kFloatBytes);
  REQUIRE(scratch.provide().has_value());
  scratch.reserve(floats, 32);
  REQUIRE(scratch.bytes() > (std::int64_t{1} << 45U));
  require_full(scratch.provide());
  cpu::Scratch shared(1);
  shared.reserve(0, floats);
  require_full(shared.provide());
}

TEST_CASE("provided scratch memory is what passes use") {
  cpu::Scratch scratch(2);
  scratch.reserve(100, 50);
  REQUIRE(scratch.provide().has_value());
  float* block = scratch.block(1);
  float* shared = scratch.shared();
  scratch.reserve(99, 50);
  REQUIRE(scratch.provide().has_value());
  REQUIRE(scratch.block(1) == block);
  REQUIRE(scratch.shared() == shared);
}

// Four axes have no kernel but matrix products, of windows x positions elements.
ConvolutionShape vast_convolution() {
  return convolution_shape(1, 1, 1, {1, 1, 60000, 30000}, {1, 1, 30000, 15000}, 1);
}

TEST_CASE("a backend counts what its operations need, and refuses what does not fit") {
  Workbench bench(test::make_backend(2));
  Backend& backend = bench.backend();
  REQUIRE(backend.provide_scratch().has_value());
  REQUIRE(backend.make_convolution(vast_convolution()).has_value());
  REQUIRE(backend.scratch_bytes() > (std::int64_t{1} << 50U));
  require_full(backend.provide_scratch());
}

TEST_CASE("what a maximum pooling remembers is refused where it does not fit") {
  PoolingShape shape;
  shape.batch = 1 << 20, shape.channels = 1 << 20;
  shape.src_h = shape.src_w = 1 << 10, shape.dst_h = shape.dst_w = 1 << 9;
  shape.kernel_h = shape.kernel_w = shape.stride_h = shape.stride_w = 2;
  for (const Layout layout : {Layout{}, Layout{8}}) {
    shape.layout = layout;
    Workbench bench(test::make_backend(1));
    auto made = bench.backend().make_pooling(shape);
    REQUIRE(made.has_value());
    require_full((*made)->take_memory());
  }
}

TEST_CASE("a window of too many elements is refused") {
  PoolingShape shape;
  shape.batch = shape.channels = 1;
  shape.src_h = shape.src_w = 20000;
  shape.dst_h = shape.dst_w = 1;
  shape.kernel_h = shape.kernel_w = 20000;
  for (const Layout layout : {Layout{}, Layout{8}}) {
    shape.layout = layout;
    Workbench bench(test::make_backend(1));
    const auto made = bench.backend().make_pooling(shape);
    REQUIRE_FALSE(made.has_value());
    REQUIRE(made.error().code == ErrorCode::kFull);
    REQUIRE(made.error().message.find("20000 x 20000") != std::string::npos);
  }
}

}  // namespace
}  // namespace speedo
