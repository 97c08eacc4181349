// Each thread makes one result: forward an output from its window, backward a source element from
// the outputs whose windows have it. So nothing is added from several threads.

#include "gpu/pooling/pooling_kernels.hpp"

#include <cfloat>

#include "gpu/launch/launch.hpp"

namespace speedo::gpu {
namespace {

// The elements of an image in any layout, and of the one that belongs to it: the same channels at
// other positions. An area is a plane of a block of channels.
struct PlaneElements {
  std::int64_t count, other_area;
  Divisor area, block, blocks;
  std::int64_t channels;

  PlaneElements(const ArrayShape& shape, std::int64_t other_spatial, Layout layout)
      : count(shape.storage_count(layout)),
        other_area(other_spatial * layout.block),
        area(shape.spatial * layout.block),
        block(layout.block),
        blocks(layout.channels(shape.channels) / layout.block),
        channels(shape.channels) {}

  // `other`: the element at position 0 of the other image.
  struct At {
    int position;
    bool is_padding;
    std::int64_t other;
  };
  SPEEDO_HOST_DEVICE At at(std::int64_t i) const {
    const std::int64_t n = area.quotient(i), within = i - n * area.value();
    const auto position = static_cast<int>(block.quotient(within));
    const std::int64_t channel = within - position * block.value();
    const bool is_padding = blocks.remainder(n) * block.value() + channel >= channels;
    return {position, is_padding, n * other_area + channel};
  }
  // Of the other image.
  SPEEDO_HOST_DEVICE std::int64_t other(const At& of, int position) const {
    return of.other + position * block.value();
  }
};

struct MaximumKernel {
  static constexpr const char* kName = "pooling_maximum";
  PlaneElements elements;  // of dst
  PoolingWindows windows;
  const float* src;
  float* dst;
  WinnerTaps winners;
  float* mask;  // null: not asked for

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < elements.count; i += lane.stride()) {
      const PlaneElements::At at = elements.at(i);
      if (at.is_padding) {
        dst[i] = 0.0F;
        continue;
      }
      float best = -FLT_MAX;
      int winner = -1, winner_tap = -1;
      windows.for_each_source(at.position, [&](int place, int tap) {
        const float value = src[elements.other(at, place)];
        const bool is_more = value > best;
        best = is_more ? value : best;
        winner = is_more ? place : winner;
        winner_tap = is_more ? tap : winner_tap;
        return true;
      });
      dst[i] = best;
      winners.set(i, winner_tap);
      if (mask != nullptr) mask[i] = static_cast<float>(winner);
    }
  }
};

struct AverageKernel {
  static constexpr const char* kName = "pooling_average";
  PlaneElements elements;  // of dst
  PoolingWindows windows;
  const float* src;
  float* dst;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < elements.count; i += lane.stride()) {
      const PlaneElements::At at = elements.at(i);
      float sum = 0.0F;
      windows.for_each_source(at.position, [&](int place, int /*tap*/) {
        sum += src[elements.other(at, place)];
        return true;
      });
      dst[i] = at.is_padding ? 0.0F : sum / windows.size(at.position);
    }
  }
};

struct PoolingGradientKernel {
  static constexpr const char* kName = "pooling_backward";
  PlaneElements elements;  // of src
  PoolingWindows windows;
  bool is_maximum;
  WinnerTaps winners;
  const float* dst_grad;
  float* src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < elements.count; i += lane.stride()) {
      const PlaneElements::At at = elements.at(i);
      float sum = 0.0F;
      if (!at.is_padding) {
        windows.for_each_output(at.position, [&](int output, int tap) {
          const std::int64_t from = elements.other(at, output);
          if (!is_maximum) {
            sum += dst_grad[from] / windows.size(output);
          } else if (winners.is(from, tap)) {
            sum += dst_grad[from];
          }
        });
      }
      src_grad[i] = sum;
    }
  }
};

ArrayShape src_of(const PoolingShape& shape) {
  return {shape.batch, shape.channels, shape.src_h * shape.src_w};
}
ArrayShape dst_of(const PoolingShape& shape) {
  return {shape.batch, shape.channels, shape.dst_h * shape.dst_w};
}

}  // namespace

void pool_maxima(Queue& queue, const PoolingShape& shape, const float* src, float* dst,
                 const WinnerTaps& winners, float* mask) {
  const PlaneElements elements(dst_of(shape), src_of(shape).spatial, shape.layout);
  launch(queue, grid_for(queue, elements.count),
         MaximumKernel{elements, PoolingWindows(shape), src, dst, winners, mask});
}

void pool_averages(Queue& queue, const PoolingShape& shape, const float* src, float* dst) {
  const PlaneElements elements(dst_of(shape), src_of(shape).spatial, shape.layout);
  launch(queue, grid_for(queue, elements.count),
         AverageKernel{elements, PoolingWindows(shape), src, dst});
}

void pool_backward(Queue& queue, const PoolingShape& shape, const WinnerTaps& winners,
                   const float* dst_grad, float* src_grad) {
  const PlaneElements elements(src_of(shape), dst_of(shape).spatial, shape.layout);
  const bool is_maximum = shape.method == PoolingShape::Method::kMax;
  launch(queue, grid_for(queue, elements.count),
         PoolingGradientKernel{elements, PoolingWindows(shape), is_maximum, winners, dst_grad,
                               src_grad});
}

}  // namespace speedo::gpu
