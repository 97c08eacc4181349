// Pooling in every layout: kernels on the host against the reference.

#include "gpu/pooling/pooling.hpp"

#include "gpu/agreement.hpp"
#include "gpu/pooling/pooling_stochastic.hpp"
#include "gpu/pooling/pooling_windows.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

std::int64_t outputs_of(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                        std::int64_t pad) {
  // Caffe rounds up, and leaves out a window that would begin behind the image and its padding.
  std::int64_t count = (size + 2 * pad - kernel + stride - 1) / stride + 1;
  if (pad > 0 && (count - 1) * stride >= size + pad) --count;
  return std::max<std::int64_t>(count, 1);
}

struct Square {
  std::int64_t h, w;
};

PoolingShape pooling_shape(std::int64_t batch, std::int64_t channels, Square image, Square kernel,
                           std::int64_t stride, std::int64_t pad) {
  PoolingShape shape;
  shape.batch = batch, shape.channels = channels;
  shape.src_h = image.h, shape.src_w = image.w;
  shape.kernel_h = kernel.h, shape.kernel_w = kernel.w;
  shape.stride_h = shape.stride_w = stride;
  shape.pad_h = shape.pad_w = pad;
  shape.dst_h = outputs_of(image.h, kernel.h, stride, pad);
  shape.dst_w = outputs_of(image.w, kernel.w, stride, pad);
  return shape;
}

std::vector<PoolingShape> pooling_shapes() {
  return {pooling_shape(2, 3, {8, 8}, {2, 2}, 2, 0),  pooling_shape(1, 20, {9, 7}, {3, 3}, 2, 0),
          pooling_shape(2, 5, {7, 10}, {3, 3}, 2, 1), pooling_shape(1, 16, {6, 6}, {3, 2}, 1, 1),
          pooling_shape(3, 10, {7, 7}, {7, 7}, 1, 0), pooling_shape(1, 2, {20, 20}, {17, 17}, 3, 0),
          pooling_shape(1, 3, {5, 4}, {2, 2}, 3, 0),  pooling_shape(2, 1, {1, 1}, {1, 1}, 1, 0),
          pooling_shape(1, 1, {40, 41}, {3, 3}, 1, 1),
          pooling_shape(2, 4, {20, 20}, {17, 17}, 3, 0),
          pooling_shape(2, 8, {9, 7}, {3, 3}, 2, 1),    pooling_shape(3, 12, {6, 5}, {3, 3}, 1, 1)};
}

TEST_CASE("planes that kernels cannot count are an error") {
  const PoolingShape large = pooling_shape(1, 1, {1 << 16, 1 << 14}, {2, 2}, 2, 0);
  CHECK(PoolingWindows::have_room_for(pooling_shape(1, 1, {1 << 14, 1 << 14}, {2, 2}, 2, 0)));
  CHECK_FALSE(PoolingWindows::have_room_for(large));
  KernelRig rig({});
  const auto made = make_pooling(*rig.queue, *rig.device, large);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == ErrorCode::kFull);
}

std::unique_ptr<Pooling> made_pooling(Trial& trial, const PoolingShape& shape) {
  std::unique_ptr<Pooling> pooling;
  trial.run([&](Backend& backend) { pooling = backend.make_pooling(shape).value(); },
            [&](Queue& queue) { pooling = make_pooling(queue, trial.device(), shape).value(); });
  return pooling;
}

TEST_CASE("maxima and averages agree with the reference in every layout") {
  PoolingShape shape = GENERATE(from_range(pooling_shapes()));
  shape.method = GENERATE(PoolingShape::Method::kMax, PoolingShape::Method::kAverage);
  shape.layout = GENERATE_COPY(from_range(stored_layouts(shape.channels)));
  const bool is_max = shape.method == PoolingShape::Method::kMax;
  const bool masked = is_max && shape.layout.is_plain();
  CAPTURE(shape.channels, shape.src_h, shape.src_w, shape.kernel_h, shape.stride_h, shape.pad_h,
          shape.layout.block, is_max);
  const ArrayShape src{shape.batch, shape.channels, shape.src_h * shape.src_w};
  const ArrayShape dst{shape.batch, shape.channels, shape.dst_h * shape.dst_w};
  require_agreement(is_max ? 1e-13 : kTight, [&](Trial& trial) {
    const auto pooling = made_pooling(trial, shape);
    const float* x = trial.put_array(src, shape.layout, drawn(src));
    float* y = trial.blank_array(dst, shape.layout);
    float* mask = masked ? trial.blank_array(dst, shape.layout) : nullptr;
    float* grad = trial.blank_array(src, shape.layout);
    pooling->forward(x, y, mask);
    pooling->backward(x, y, trial.put_array(dst, shape.layout, drawn(dst, -1, 1, 2)), grad);
    auto values =
        joined(trial.get_array(dst, shape.layout, y), trial.get_array(src, shape.layout, grad));
    return masked ? joined(values, trial.get_array(dst, shape.layout, mask)) : values;
  });
}

TEST_CASE("stochastic pooling agrees with the reference") {
  PoolingShape shape = GENERATE(from_range(pooling_shapes()));
  shape.pad_h = shape.pad_w = 0;
  shape.dst_h = outputs_of(shape.src_h, shape.kernel_h, shape.stride_h, 0);
  shape.dst_w = outputs_of(shape.src_w, shape.kernel_w, shape.stride_w, 0);
  CAPTURE(shape.channels, shape.src_h, shape.src_w, shape.kernel_h, shape.stride_h);
  const std::int64_t planes = shape.batch * shape.channels;
  const std::int64_t src_count = planes * shape.src_h * shape.src_w;
  const std::int64_t dst_count = planes * shape.dst_h * shape.dst_w;
  require_agreement(kTight, [&](Trial& trial) {
    const float* src = trial.put(drawn(src_count, 0, 1));
    const float* dst_grad = trial.put(drawn(dst_count, -1, 1, 2));
    float* drawn_dst = trial.blank(dst_count);
    float* winners = trial.blank(dst_count);
    float* dst = trial.blank(dst_count);
    float* drawn_grad = trial.blank(src_count);
    float* grad = trial.blank(src_count);
    trial.run(
        [&](Backend& backend) {
          backend.sample_windows(shape, 7, src, drawn_dst, winners);
          backend.sample_windows_backward(shape, winners, dst_grad, drawn_grad);
          backend.weigh_windows(shape, src, dst);
          backend.weigh_windows_backward(shape, src, dst, dst_grad, grad);
        },
        [&](Queue& queue) {
          sample_windows(queue, shape, 7, src, drawn_dst, winners);
          sample_windows_backward(queue, shape, winners, dst_grad, drawn_grad);
          weigh_windows(queue, shape, src, dst);
          weigh_windows_backward(queue, shape, src, dst, dst_grad, grad);
        });
    auto values = joined(trial.get(drawn_dst, dst_count), trial.get(winners, dst_count));
    values = joined(values, trial.get(dst, dst_count));
    return joined(values, joined(trial.get(drawn_grad, src_count), trial.get(grad, src_count)));
  });
}

}  // namespace
}  // namespace speedo::gpu
