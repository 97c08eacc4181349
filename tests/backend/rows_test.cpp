// Operations on the rows of a matrix, the CPU backend against the reference.

#include <optional>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

using RowsShape = Backend::RowsShape;

RowsShape any_rows() {
  return GENERATE(RowsShape{1, 1}, RowsShape{1, 7}, RowsShape{5, 3}, RowsShape{31, 17},
                  RowsShape{3, 1000}, RowsShape{257, 33}, RowsShape{1, 16385}, RowsShape{2, 70001},
                  RowsShape{13, 1}, RowsShape{0, 4});
}

TEST_CASE("rows are reduced as the reference does") {
  const RowsShape shape = any_rows();
  const auto op = GENERATE(ReduceOp::kSum, ReduceOp::kAbsSum, ReduceOp::kSquareSum);
  CAPTURE(shape.rows, shape.columns, static_cast<int>(op));
  const auto x = test_values(shape.rows * shape.columns, -1.0F, 2.0F);
  require_conforming_vectors(1e-6, [&](Workbench& bench) {
    float* y = bench.blank(shape.rows);
    bench.backend().reduce_rows(op, shape, -0.75F, bench.put(x), y);
    return bench.get(y, shape.rows);
  });
}

TEST_CASE("rows without elements sum up to nothing") {
  Workbench bench(test::make_backend(2));
  float* y = bench.blank(3);
  bench.backend().reduce_rows(ReduceOp::kSquareSum, {3, 0}, 2.0F, bench.put({}), y);
  REQUIRE(bench.get(y, 3) == std::vector<float>(3, 0.0F));
}

TEST_CASE("rows are normalized as the reference does") {
  const RowsShape shape = any_rows();
  const auto epsilon = GENERATE(as<std::optional<float>>(), std::nullopt, 1e-9F, 0.1F);
  const bool in_place = GENERATE(false, true);
  CAPTURE(shape.rows, shape.columns, epsilon.value_or(-1.0F), in_place);
  // A row of one element has no deviation: what is left of it is divided by almost nothing.
  if (shape.columns == 1 && epsilon && *epsilon < 1e-3F) return;
  const Backend::RowNorm norm{shape, epsilon};
  const std::int64_t count = shape.rows * shape.columns;
  const auto x = test_values(count, 4.0F, 6.0F);
  const auto y_grad = test_values(count, -1.0F, 1.0F, 2);
  require_conforming_vectors(3e-6, [&](Workbench& bench) {
    float* source = bench.put(x);
    float* y = in_place ? source : bench.blank(count);
    float* deviation = bench.blank(shape.rows);
    bench.backend().normalize_rows(norm, source, y, deviation);
    return join(bench.get(y, count), bench.get(deviation, shape.rows));
  });
  require_conforming_vectors(3e-6, [&](Workbench& bench) {
    float* y = bench.put(test_values(count, -1.5F, 1.5F, 3));
    const float* deviation = bench.put(test_values(shape.rows, 0.5F, 2.0F, 4));
    float* dy = bench.put(y_grad);
    float* dx = in_place ? dy : bench.blank(count);
    bench.backend().normalize_rows_backward(norm, y, deviation, dy, dx);
    return bench.get(dx, count);
  });
}

TEST_CASE("rows of equal numbers are normalized to zero") {
  Workbench bench(test::make_backend(1));
  const std::int64_t count = 2 * 333;
  float* y = bench.blank(count);
  bench.backend().normalize_rows({{2, 333}, 1e-9F}, bench.put(std::vector<float>(count, 0.1F)), y,
                                 bench.blank(2));
  REQUIRE(bench.get(y, count) == std::vector<float>(count, 0.0F));
}

}  // namespace
}  // namespace speedo
