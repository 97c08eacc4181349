// Pooling in every layout: kernels on the host against the reference.

#include "gpu/pooling/pooling.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <speedo/base/random.hpp>

#include "gpu/agreement.hpp"
#include "gpu/pooling/pooling_fixed.hpp"
#include "gpu/pooling/pooling_kernels.hpp"
#include "gpu/pooling/pooling_stochastic.hpp"
#include "gpu/pooling/pooling_windows.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"

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
  return {
      pooling_shape(2, 8, {7, 8}, {2, 2}, 2, 0),   pooling_shape(2, 16, {9, 8}, {3, 3}, 1, 1),
      pooling_shape(2, 3, {8, 8}, {2, 2}, 2, 0),   pooling_shape(1, 20, {9, 7}, {3, 3}, 2, 0),
      pooling_shape(2, 5, {7, 10}, {3, 3}, 2, 1),  pooling_shape(1, 16, {6, 6}, {3, 2}, 1, 1),
      pooling_shape(3, 10, {7, 7}, {7, 7}, 1, 0),  pooling_shape(1, 2, {20, 20}, {17, 17}, 3, 0),
      pooling_shape(1, 3, {5, 4}, {2, 2}, 3, 0),   pooling_shape(2, 1, {1, 1}, {1, 1}, 1, 0),
      pooling_shape(1, 1, {40, 41}, {3, 3}, 1, 1), pooling_shape(2, 4, {20, 20}, {17, 17}, 3, 0),
      pooling_shape(2, 8, {9, 7}, {3, 3}, 2, 1),   pooling_shape(3, 12, {6, 5}, {3, 3}, 1, 1)};
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

// Sizes and steps that have kernels of their own, with and without padding, what overhangs it, and
// a single output; lanes of float32, and of bfloat16 too.
std::vector<PoolingShape> fixed_shapes() {
  return {pooling_shape(2, 16, {8, 6}, {2, 2}, 2, 0),  pooling_shape(1, 8, {7, 9}, {2, 2}, 2, 0),
          pooling_shape(1, 8, {7, 6}, {2, 2}, 2, 1),   pooling_shape(2, 24, {9, 8}, {3, 3}, 2, 0),
          pooling_shape(3, 16, {8, 11}, {3, 3}, 2, 1), pooling_shape(1, 8, {5, 5}, {3, 3}, 2, 2),
          pooling_shape(2, 8, {3, 7}, {3, 3}, 2, 0),   pooling_shape(2, 16, {7, 8}, {3, 3}, 1, 1),
          pooling_shape(1, 24, {6, 5}, {3, 3}, 1, 0),  pooling_shape(2, 8, {4, 3}, {3, 3}, 1, 2),
          pooling_shape(2, 8, {3, 3}, {3, 3}, 1, 0),   pooling_shape(1, 40, {2, 1}, {3, 3}, 2, 1)};
}

PoolingShape drawn_fixed_shape(Random& random) {
  const auto from = [&](std::int64_t low, std::uint64_t count) {
    return low + static_cast<std::int64_t>(random.below(count));
  };
  const std::int64_t size = from(2, 2), step = size == 2 ? 2 : from(1, 2), pad = from(0, 3);
  return pooling_shape(from(1, 3), 8 * from(1, 5), {from(3, 14), from(3, 14)}, {size, size}, step,
                       pad);
}

// Ties, both zeros, and what no window, or each one, takes for its maximum.
std::vector<float> drawn_with_extremes(Random& random, std::int64_t count) {
  static constexpr float kExtremes[] = {
      -0.0F,    0.0F, 1.0F, -1.0F, HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN(),
      -FLT_MAX, 0.5F, 3.0F};
  std::vector<float> values(static_cast<std::size_t>(count));
  const bool is_extreme = random.below(2) == 0;
  for (float& value : values) {
    const std::size_t i = random.below(std::size(kExtremes));
    value = is_extreme ? kExtremes[i] : random.uniform(-1.0F, 1.0F);
  }
  return values;
}

// What both passes leave in memory: winners' taps, outputs, gradients.
std::vector<float> memory_after(KernelRig& rig, std::int64_t shift, const PoolingShape& shape,
                                const std::vector<float>& src, const std::vector<float>& dst_grad) {
  const ArrayShape src_shape{shape.batch, shape.channels, shape.src_h * shape.src_w};
  const ArrayShape dst_shape{shape.batch, shape.channels, shape.dst_h * shape.dst_w};
  const std::int64_t tap_floats = dst_shape.storage_count({}) / 4;
  Trial trial(rig, {.shift = shift});
  const float* x = trial.put_array(src_shape, shape.layout, src);
  const float* y_grad = trial.put_array(dst_shape, shape.layout, dst_grad);
  float* y = trial.blank_array(dst_shape, shape.layout);
  float* x_grad = trial.blank_array(src_shape, shape.layout);
  float* taps = trial.blank(tap_floats + 4) + (4 - shift) % 4;  // aligned, in any case
  const WinnerTaps winners(
      shape.method == PoolingShape::Method::kMax && shape.trains ? taps : nullptr,
      PoolingWindows(shape));
  if (shape.method == PoolingShape::Method::kMax) {
    pool_maxima(*rig.queue, shape, x, y, winners, nullptr);
  } else {
    pool_averages(*rig.queue, shape, x, y);
  }
  if (shape.trains) pool_backward(*rig.queue, shape, winners, y_grad, x_grad);
  rig.driver.synchronize(rig.stream);
  const std::vector<float> bytes = trial.get(taps, tap_floats);
  const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return joined({first, first + 4 * tap_floats},
                joined(trial.get_array(dst_shape, shape.layout, y),
                       trial.get_array(src_shape, shape.layout, x_grad)));
}

// To the bit. Which of two NaNs a sum is depends on the processor.
bool are_same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST_CASE("windows of sizes that the compiler knows give the same bits as others") {
  Random random(test::varied(5));
  std::vector<PoolingShape> shapes = fixed_shapes();
  for (int i = 0; i < 30; ++i) shapes.push_back(drawn_fixed_shape(random));
  KernelRig rig({.blocks_max = 2, .backwards = random.below(2) == 0});
  const auto launched = [&](const char* name) {
    const auto& history = rig.driver.history();
    return std::count(history.begin(), history.end(), name);
  };
  const std::ptrdiff_t count = std::ssize(shapes);
  for (PoolingShape shape : shapes) {
    const std::int64_t channels = shape.channels;
    for (const Layout layout :
         {Layout{channels}, Layout{8}, layout_of(LayoutKind::kChannelsLastBfloat16, channels)}) {
      const std::int64_t planes = shape.batch * shape.channels;
      const auto src = drawn_with_extremes(random, planes * shape.src_h * shape.src_w);
      const auto dst_grad = drawn_with_extremes(random, planes * shape.dst_h * shape.dst_w);
      shape.layout = layout;
      for (const auto method : {PoolingShape::Method::kMax, PoolingShape::Method::kAverage}) {
        for (const bool trains : {true, false}) {
          shape.method = method, shape.trains = trains;
          CAPTURE(shape.channels, shape.src_h, shape.src_w, shape.kernel_h, shape.stride_h,
                  shape.pad_h, layout.block, trains);
          const auto fixed = memory_after(rig, 0, shape, src, dst_grad);
          const auto other = memory_after(rig, 2, shape, src, dst_grad);
          CHECK(std::equal(fixed.begin(), fixed.end(), other.begin(), other.end(), are_same));
        }
      }
    }
  }
  CHECK(launched("pooling_maximum_fixed") == 6 * count);
  CHECK(launched("pooling_backward_fixed") == 3 * count);
  CHECK(launched("pooling_average_backward_fixed") == 3 * count);
  CHECK(launched("pooling_maximum") == 6 * count);
  CHECK(launched("pooling_backward") == 6 * count);
}

TEST_CASE("kernels for windows that the compiler knows leave other shapes to others") {
  PoolingShape shape = pooling_shape(2, 16, {9, 9}, {3, 3}, 2, 1);
  shape.layout = {16};
  alignas(16) float src[4] = {}, dst[4] = {};
  KernelRig rig({});
  const auto is_queued = [&](const PoolingShape& other, const float* from) {
    const bool forward = queue_fixed_maxima(*rig.queue, other, from, dst, nullptr);
    CHECK(queue_fixed_backward(*rig.queue, other, nullptr, from, dst) == forward);
    return forward;
  };
  PoolingShape other = shape;
  CHECK_FALSE(is_queued(shape, src + 1));
  other.layout = {1};
  CHECK_FALSE(is_queued(other, src));
  other.layout = {18};  // not a multiple of 16 bytes
  other.channels = 18;
  CHECK_FALSE(is_queued(other, src));
  other.layout = {8};  // the last block is padding in part
  other.channels = 12;
  CHECK_FALSE(is_queued(other, src));
  for (const auto& [kernel, step] : {std::pair{2, 1}, {3, 3}, {4, 2}}) {
    other = pooling_shape(2, 16, {9, 9}, {kernel, kernel}, step, 0);
    other.layout = {16};
    CHECK_FALSE(is_queued(other, src));
  }
  other = shape;
  other.stride_w = 1, other.dst_w = 9;
  CHECK_FALSE(is_queued(other, src));
  other = shape;
  other.batch = 1 << 30;  // more than ints count
  CHECK_FALSE(is_queued(other, src));
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
