// Arithmetic per channel in every layout: kernels on the host against the reference.

#include "gpu/elementwise/channels.hpp"

#include "gpu/agreement.hpp"
#include "gpu/elementwise/channel_sums.hpp"
#include "gpu/elementwise/elementwise.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

std::vector<ArrayShape> channel_shapes() {
  return {{1, 1, 1},   {2, 3, 5},     {3, 16, 48}, {64, 500, 1}, {2, 20, 36},  {5, 37, 11},
          {1, 130, 8}, {2, 1, 40009}, {0, 4, 3},   {2, 24, 300}, {300, 3, 49}, {3, 40, 1},
          {3, 4, 7},   {2, 8, 12},    {2, 64, 9},  {3, 6, 10}};
}

TEST_CASE("channels are scaled, shifted and activated as in the reference") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const Layout layout = GENERATE_COPY(from_range(stored_layouts(shape.channels)));
  const int given = GENERATE(0, 1, 2, 3);
  CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block, given);
  require_agreement(kTight, [&](Trial& trial) {
    const float* gamma = (given & 1) != 0 ? trial.put(drawn(shape.channels, -2, 2, 3)) : nullptr;
    const float* beta = (given & 2) != 0 ? trial.put(drawn(shape.channels, -1, 1, 4)) : nullptr;
    const ChannelScale scale{gamma, beta, UnaryOp{UnaryKind::kRelu, 0.125F}};
    const float* x = trial.put_array(shape, layout, drawn(shape));
    float* y = trial.blank_array(shape, layout);
    float* in_place = trial.put_array(shape, layout, drawn(shape));
    trial.run(
        [&](Backend& backend) {
          backend.scale_channels({shape, layout}, scale, x, y);
          backend.scale_channels({shape, layout}, {gamma, beta}, in_place, in_place);
        },
        [&](Queue& queue) {
          scale_channels(queue, {shape, layout}, scale, x, y);
          scale_channels(queue, {shape, layout}, {gamma, beta}, in_place, in_place);
        });
    return joined(trial.get_array(shape, layout, y), trial.get_array(shape, layout, in_place));
  });
}

TEST_CASE("the channels' values are not aligned where the array is") {
  const ArrayShape shape{2, 8, 12};
  const Layout layout = GENERATE(Layout{1}, Layout{4}, Layout{8});
  const int behind = GENERATE(0, 1, 4);
  CAPTURE(layout.block, behind);
  require_agreement(kTight, [&](Trial& trial) {
    const float* gamma = trial.put(drawn(shape.channels + behind, -2, 2, 3)) + behind;
    const float* beta = trial.put(drawn(shape.channels, -1, 1, 4));
    const float* x = trial.put_array(shape, layout, drawn(shape));
    float* y = trial.blank_array(shape, layout);
    float* z = trial.blank_array(shape, layout);
    trial.run(
        [&](Backend& backend) {
          backend.scale_channels({shape, layout}, {gamma, beta}, x, y);
          backend.prelu_forward({shape, layout}, gamma, x, z);
        },
        [&](Queue& queue) {
          scale_channels(queue, {shape, layout}, {gamma, beta}, x, y);
          prelu_forward(queue, {shape, layout}, gamma, x, z);
        });
    return joined(trial.get_array(shape, layout, y), trial.get_array(shape, layout, z));
  });
}

TEST_CASE("channels are summed as in the reference") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const Layout layout = GENERATE_COPY(from_range(stored_layouts(shape.channels)));
  const int wanted = GENERATE(1, 2, 3);
  CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block, wanted);
  require_agreement(kTight, [&](Trial& trial) {
    const bool gamma = (wanted & 1) != 0, beta = (wanted & 2) != 0;
    const float* x = gamma ? trial.put_array(shape, layout, drawn(shape, -1, 1)) : nullptr;
    const float* y_grad = trial.put_array(shape, layout, drawn(shape, -1, 2, 2));
    const auto before = drawn(shape.channels, -1, 1, 4);
    float* gamma_grad = gamma ? trial.put(before) : nullptr;
    float* beta_grad = beta ? trial.put(before) : nullptr;
    trial.run(
        [&](Backend& backend) {
          backend.sum_channels({shape, layout}, x, y_grad, gamma_grad, beta_grad);
        },
        [&](Queue& queue) {
          sum_channels(queue, {shape, layout}, x, y_grad, gamma_grad, beta_grad);
        });
    const auto empty = std::vector<float>();
    return joined(gamma ? trial.get(gamma_grad, shape.channels) : empty,
                  beta ? trial.get(beta_grad, shape.channels) : empty);
  });
}

TEST_CASE("channels are summed by fours where four neighbours can be loaded") {
  const auto lanes = [](std::int64_t channels, LayoutKind kind, bool are_aligned = true) {
    return ChannelTiles({3, channels, 5}, layout_of(kind, channels), are_aligned).lanes;
  };
  for (const LayoutKind kind : {LayoutKind::kChannelsLast, LayoutKind::kChannelsLastBfloat16}) {
    CHECK(lanes(4, kind) == 4);
    CHECK(lanes(260, kind) == 4);
    CHECK(lanes(6, kind) == 1);
    CHECK(lanes(260, kind, false) == 1);
  }
  CHECK(lanes(260, LayoutKind::kPlain) == 1);
  CHECK(ChannelTiles({3, 8, 1}, {}, true).lanes == 4);
}

// More channels than the scratch has sums for; more pieces than the second kernel's threads have
// under way at a time; tiles of each width of it.
TEST_CASE("many channels and many pieces are summed as in the reference") {
  const ArrayShape shape =
      GENERATE(ArrayShape{2, 300'001, 1}, ArrayShape{1, 1, 1'200'000}, ArrayShape{150, 300, 1},
               ArrayShape{150, 700, 1}, ArrayShape{150, 1500, 1});
  CAPTURE(shape.batch, shape.channels, shape.spatial);
  require_agreement(kTight, [&](Trial& trial) {
    const float* y_grad = trial.put(drawn(shape));
    float* beta_grad = trial.put(drawn(shape.channels));
    trial.run(
        [&](Backend& backend) {
          backend.sum_channels({shape, {}}, nullptr, y_grad, nullptr, beta_grad);
        },
        [&](Queue& queue) {
          sum_channels(queue, {shape, {}}, nullptr, y_grad, nullptr, beta_grad);
        });
    return trial.get(beta_grad, shape.channels);
  });
}

TEST_CASE("PReLU agrees with the reference") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const Layout layout = GENERATE_COPY(from_range(all_layouts(shape.channels)));
  CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block);
  const ChannelView view{shape, layout};
  require_agreement(kTight, [&](Trial& trial) {
    const float* slope = trial.put(drawn(shape.channels, -0.5F, 0.5F, 3));
    const float* x = trial.put_array(shape, layout, drawn(shape));
    float* y = trial.blank_array(shape, layout);
    float* grad = trial.put_array(shape, layout, drawn(shape, 0, 1, 2));
    float* slope_grad = trial.put(drawn(shape.channels));
    trial.run(
        [&](Backend& backend) {
          backend.prelu_forward(view, slope, x, y);
          backend.prelu_backward(view, slope, x, grad, nullptr, slope_grad);
          backend.prelu_backward(view, slope, x, grad, grad, slope_grad);
        },
        [&](Queue& queue) {
          prelu_forward(queue, view, slope, x, y);
          prelu_backward(queue, view, {slope, x, grad, nullptr, slope_grad});
          prelu_backward(queue, view, {slope, x, grad, grad, slope_grad});
        });
    return joined(joined(trial.get_array(shape, layout, y), trial.get_array(shape, layout, grad)),
                  trial.get(slope_grad, shape.channels));
  });
}

TEST_CASE("dropout masks are the same bit for bit, in every layout") {
  const ArrayShape shape = GENERATE(from_range(channel_shapes()));
  const Layout layout = GENERATE_COPY(from_range(stored_layouts(shape.channels)));
  const float ratio = GENERATE(0.0F, 0.1F, 0.5F, 0.9999F);
  const std::uint64_t seed = GENERATE(std::uint64_t{7}, ~std::uint64_t{0} - 100);
  CAPTURE(shape.batch, shape.channels, shape.spatial, layout.block, ratio, seed);
  require_agreement(0.0, [&](Trial& trial) {
    float* mask = trial.blank_array(shape, layout);
    trial.run([&](Backend& backend) { backend.dropout_mask({shape, layout}, ratio, seed, mask); },
              [&](Queue& queue) { dropout_mask(queue, {shape, layout}, ratio, seed, mask); });
    return trial.get_array(shape, layout, mask);
  });
}

}  // namespace
}  // namespace speedo::gpu
