// Operations on rows: kernels on the host against the reference.

#include "gpu/norm/row_norm.hpp"

#include "gpu/agreement.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

std::vector<Backend::RowsShape> row_shapes() {
  return {{0, 5}, {1, 1}, {3, 7}, {64, 16}, {65, 17}, {2, 1023}, {3, 1025}, {200, 33}, {1, 40003}};
}

TEST_CASE("rows are summed as in the reference") {
  const Backend::RowsShape shape = GENERATE(from_range(row_shapes()));
  const auto op = GENERATE(ReduceOp::kSum, ReduceOp::kAbsSum, ReduceOp::kSquareSum);
  CAPTURE(shape.rows, shape.columns, static_cast<int>(op));
  require_agreement(kTight, [&](Trial& trial) {
    const float* x = trial.put(drawn(shape.rows * shape.columns, -1, 2));
    float* y = trial.blank(shape.rows);
    trial.run([&](Backend& backend) { backend.reduce_rows(op, shape, 0.5F, x, y); },
              [&](Queue& queue) { reduce_rows(queue, op, shape, 0.5F, x, y); });
    return trial.get(y, shape.rows);
  });
}

TEST_CASE("rows are normalized as in the reference, in place too") {
  const Backend::RowsShape shape = GENERATE(from_range(row_shapes()));
  const std::optional<float> epsilon =
      GENERATE(std::optional<float>(), std::optional<float>(1e-9F), std::optional<float>(0.1F));
  const bool in_place = GENERATE(false, true);
  if (epsilon == 1e-9F && shape.columns == 1) return;
  CAPTURE(shape.rows, shape.columns, epsilon.value_or(-1.0F), in_place);
  const Backend::RowNorm norm{shape, epsilon};
  const std::int64_t count = shape.rows * shape.columns;
  require_agreement(kTight, [&](Trial& trial) {
    float* x = trial.put(drawn(count, 1, 3));
    float* y = in_place ? x : trial.blank(count);
    float* deviation = trial.blank(shape.rows);
    trial.run([&](Backend& backend) { backend.normalize_rows(norm, x, y, deviation); },
              [&](Queue& queue) { normalize_rows(queue, norm, x, y, deviation); });
    return joined(trial.get(y, count), trial.get(deviation, shape.rows));
  });
  require_agreement(kTight, [&](Trial& trial) {
    const float* y = trial.put(drawn(count, -1.5F, 1.5F, 3));
    const float* deviation = trial.put(drawn(shape.rows, 0.5F, 2.0F, 4));
    float* dy = trial.put(drawn(count, -1, 1, 5));
    float* dx = in_place ? dy : trial.blank(count);
    trial.run(
        [&](Backend& backend) { backend.normalize_rows_backward(norm, y, deviation, dy, dx); },
        [&](Queue& queue) {
          normalize_rows_backward(queue, norm, {y, deviation, dy, dx});
        });
    return trial.get(dx, count);
  });
}

}  // namespace
}  // namespace speedo::gpu
