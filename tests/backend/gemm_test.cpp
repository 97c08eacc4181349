// Matrix products of many shapes, the CPU backend against the reference: each of its routines, with
// whole and cut tiles.

#include "backend/conformance.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using Shape = Backend::GemmShape;

void require_products(Shape shape, Op a_op, Op b_op, float beta) {
  CAPTURE(shape.m, shape.n, shape.k, a_op, b_op, beta);
  require_conforming_vectors(2e-6, [&](Workbench& bench) {
    const std::int64_t count = shape.m * shape.n;
    float* c = beta == 0.0F ? bench.blank(count) : bench.put(test_values(count, -1, 1, 3));
    bench.backend().gemm({a_op, b_op, shape, 0.7F, beta},
                         bench.put(test_values(shape.m * shape.k, -1, 1, 1)),
                         bench.put(test_values(shape.k * shape.n, -1, 1, 2)), c);
    return bench.get(c, count);
  });
}

TEST_CASE("matrix products agree with the reference") {
  const Shape shape = GENERATE(Shape{1, 1, 1}, Shape{3, 5, 7}, Shape{64, 10, 500},
                               Shape{17, 129, 33}, Shape{130, 70, 150}, Shape{2, 300, 250},
                               Shape{5, 4, 0}, Shape{0, 3, 2}, Shape{3, 0, 2});
  const auto a_op = GENERATE(Op::kNone, Op::kTranspose);
  const auto b_op = GENERATE(Op::kNone, Op::kTranspose);
  for (const float beta : {0.0F, 1.0F, -0.5F}) require_products(shape, a_op, b_op, beta);
}

TEST_CASE("products of a batch and a weight matrix agree with the reference") {
  const std::int64_t batch = GENERATE(1, 2, 5, 6, 7, 13, 32, 64, 65, 97);
  const auto [outputs, inputs] = GENERATE(
      table<std::int64_t, std::int64_t>({{257, 1031}, {10, 2500}, {1000, 131}, {3, 4099}}));
  // Forward, backward by data, backward by weights: an inner product's three.
  require_products({batch, outputs, inputs}, Op::kNone, Op::kTranspose, 0.0F);
  require_products({batch, inputs, outputs}, Op::kNone, Op::kNone, 0.0F);
  require_products({outputs, inputs, batch}, Op::kTranspose, Op::kNone, 1.0F);
}

TEST_CASE("a product of few rows is as good as one of many") {
  for (std::int64_t rows = 1; rows <= 20; ++rows) {
    require_products({rows, 515, 77}, Op::kNone, Op::kTranspose, 1.0F);
    require_products({515, rows, 77}, Op::kNone, Op::kNone, 0.0F);
    require_products({rows, 515, 77}, Op::kTranspose, Op::kNone, 1.0F);
  }
}

}  // namespace
}  // namespace speedo
