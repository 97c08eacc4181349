// Of any windows. Each thread makes one result, or those of four neighbouring channels: forward
// outputs from their window, backward source elements from the outputs whose windows have them. So
// nothing is added from several threads.

#include "gpu/pooling/pooling_kernels.hpp"

#include <cfloat>

#include "gpu/launch/launch.hpp"
#include "gpu/pooling/pooling_fixed.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

// The elements of an image in any layout, and of the one that belongs to it: the same channels at
// other positions. An area is a plane of a block of channels. With four lanes an element is four
// neighbouring channels, and all counts are of such.
struct PlaneElements {
  std::int64_t count, other_area;
  Divisor area, block, blocks;
  std::int64_t channels;

  PlaneElements(const ArrayShape& shape, std::int64_t other_spatial, Layout layout, int lanes)
      : count(shape.storage_count(layout) / lanes),
        other_area(other_spatial * layout.block / lanes),
        area(shape.spatial * layout.block / lanes),
        block(layout.block / lanes),
        blocks(layout.channels(shape.channels) / layout.block),
        channels(shape.channels / lanes) {}

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

// Element i of an array of such elements.
template <int kLanes, ElementType kType>
struct PlaneValues {
  float of[kLanes];

  SPEEDO_HOST_DEVICE static PlaneValues load(ArrayFrom from, std::int64_t i) {
    if constexpr (kLanes == 1) {
      return {from.get<kType>(i)};
    } else {
      const Floats4 four = FourAt<kType>{4 * i}.load(from);
      return {four.x, four.y, four.z, four.w};
    }
  }
  SPEEDO_HOST_DEVICE void store(ArrayTo to, std::int64_t i) const {
    if constexpr (kLanes == 1) {
      to.put<kType>(i, of[0]);
    } else {
      FourAt<kType>{4 * i}.store(to, {of[0], of[1], of[2], of[3]});
    }
  }
};

template <int kLanes>
struct MaximumKernel {
  static constexpr const char* kName = "pooling_maximum";
  PlaneElements elements;  // of dst
  PoolingWindows windows;
  ArrayFrom src;
  ArrayTo dst;
  WinnerTaps winners;
  float* mask;  // null: not asked for; of one lane alone

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(src.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    using Values = PlaneValues<kLanes, kType>;
    for (std::int64_t i = lane.first(); i < elements.count; i += lane.stride()) {
      const PlaneElements::At at = elements.at(i);
      if (at.is_padding) {
        Values{}.store(dst, i);
        continue;
      }
      Values best;
      int winner[kLanes], winner_tap[kLanes];
      for (int j = 0; j < kLanes; ++j) {
        best.of[j] = -FLT_MAX;
        winner[j] = winner_tap[j] = -1;
      }
      windows.for_each_source(at.position, [&](int place, int tap) {
        const auto value = Values::load(src, elements.other(at, place));
        for (int j = 0; j < kLanes; ++j) {
          const bool is_more = value.of[j] > best.of[j];
          best.of[j] = is_more ? value.of[j] : best.of[j];
          winner[j] = is_more ? place : winner[j];
          winner_tap[j] = is_more ? tap : winner_tap[j];
        }
        return true;
      });
      best.store(dst, i);
      if constexpr (kLanes == 1) {
        winners.set(i, winner_tap[0]);
        if (mask != nullptr) mask[i] = static_cast<float>(winner[0]);
      } else {
        winners.set_four(i, winner_tap);
      }
    }
  }
};

template <int kLanes>
struct AverageKernel {
  static constexpr const char* kName = "pooling_average";
  PlaneElements elements;  // of dst
  PoolingWindows windows;
  ArrayFrom src;
  ArrayTo dst;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(src.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    using Values = PlaneValues<kLanes, kType>;
    for (std::int64_t i = lane.first(); i < elements.count; i += lane.stride()) {
      const PlaneElements::At at = elements.at(i);
      Values sum = {};
      windows.for_each_source(at.position, [&](int place, int /*tap*/) {
        const auto value = Values::load(src, elements.other(at, place));
        for (int j = 0; j < kLanes; ++j) sum.of[j] += value.of[j];
        return true;
      });
      const float size = windows.size(at.position);
      for (float& each : sum.of) each = at.is_padding ? 0.0F : each / size;
      sum.store(dst, i);
    }
  }
};

template <int kLanes>
struct PoolingGradientKernel {
  static constexpr const char* kName = "pooling_backward";
  PlaneElements elements;  // of src
  PoolingWindows windows;
  bool is_maximum;
  WinnerTaps winners;
  ArrayFrom dst_grad;
  ArrayTo src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(dst_grad.type, [&](auto is) { make<decltype(is)::value>(lane); });
  }

 private:
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void make(const Lane& lane) const {
    using Values = PlaneValues<kLanes, kType>;
    for (std::int64_t i = lane.first(); i < elements.count; i += lane.stride()) {
      const PlaneElements::At at = elements.at(i);
      Values sum = {};
      if (!at.is_padding) {
        windows.for_each_output(at.position, [&](int output, int tap) {
          add(elements.other(at, output), output, tap, sum);
        });
      }
      sum.store(src_grad, i);
    }
  }

  // What element `from` of dst_grad gives to the source elements at a tap of its window.
  template <class Values>
  SPEEDO_HOST_DEVICE void add(std::int64_t from, int output, int tap, Values& sum) const {
    if (!is_maximum) {
      const auto grad = Values::load(dst_grad, from);
      const float size = windows.size(output);
      for (int j = 0; j < kLanes; ++j) sum.of[j] += grad.of[j] / size;
    } else if constexpr (kLanes == 1) {
      if (winners.is(from, tap)) sum.of[0] += Values::load(dst_grad, from).of[0];
    } else {
      const WinnerTaps::Four taps = winners.four(from);
      const auto grad = Values::load(dst_grad, from);
      for (int j = 0; j < kLanes; ++j) sum.of[j] += taps.is(j, tap) ? grad.of[j] : 0.0F;
    }
  }
};

ArrayShape src_of(const PoolingShape& shape) {
  return {shape.batch, shape.channels, shape.src_h * shape.src_w};
}
ArrayShape dst_of(const PoolingShape& shape) {
  return {shape.batch, shape.channels, shape.dst_h * shape.dst_w};
}

// Whether four neighbours in memory are channels of one position.
bool has_fours(const PoolingShape& shape, const float* one, const float* other) {
  const ElementType type = shape.layout.type;
  return shape.layout.block % 4 == 0 && shape.channels % 4 == 0 &&
         are_aligned(ArrayFrom{one, type}, ArrayFrom{other, type});
}

template <int kLanes>
void queue_maxima(Queue& queue, const PoolingShape& shape, const float* src, float* dst,
                  const WinnerTaps& winners, float* mask) {
  const PlaneElements elements(dst_of(shape), src_of(shape).spatial, shape.layout, kLanes);
  launch(queue, grid_for(queue, elements.count),
         MaximumKernel<kLanes>{elements, PoolingWindows(shape), {src, shape.layout.type},
                               {dst, shape.layout.type}, winners, mask});
}

template <int kLanes>
void queue_averages(Queue& queue, const PoolingShape& shape, const float* src, float* dst) {
  const PlaneElements elements(dst_of(shape), src_of(shape).spatial, shape.layout, kLanes);
  launch(queue, grid_for(queue, elements.count),
         AverageKernel<kLanes>{elements, PoolingWindows(shape), {src, shape.layout.type},
                               {dst, shape.layout.type}});
}

template <int kLanes>
void queue_backward(Queue& queue, const PoolingShape& shape, const WinnerTaps& winners,
                    const float* dst_grad, float* src_grad) {
  const PlaneElements elements(src_of(shape), dst_of(shape).spatial, shape.layout, kLanes);
  const bool is_maximum = shape.method == PoolingShape::Method::kMax;
  launch(queue, grid_for(queue, elements.count),
         PoolingGradientKernel<kLanes>{elements, PoolingWindows(shape), is_maximum, winners,
                                       {dst_grad, shape.layout.type},
                                       {src_grad, shape.layout.type}});
}

}  // namespace

void pool_maxima(Queue& queue, const PoolingShape& shape, const float* src, float* dst,
                 const WinnerTaps& winners, float* mask) {
  if (mask == nullptr && queue_fixed_maxima(queue, shape, src, dst, winners.bytes())) return;
  const bool by_fours = mask == nullptr && has_fours(shape, src, dst);
  (by_fours ? queue_maxima<4> : queue_maxima<1>)(queue, shape, src, dst, winners, mask);
}

void pool_averages(Queue& queue, const PoolingShape& shape, const float* src, float* dst) {
  (has_fours(shape, src, dst) ? queue_averages<4> : queue_averages<1>)(queue, shape, src, dst);
}

void pool_backward(Queue& queue, const PoolingShape& shape, const WinnerTaps& winners,
                   const float* dst_grad, float* src_grad) {
  if (queue_fixed_backward(queue, shape, winners.bytes(), dst_grad, src_grad)) return;
  const bool by_fours = has_fours(shape, dst_grad, src_grad);
  (by_fours ? queue_backward<4> : queue_backward<1>)(queue, shape, winners, dst_grad, src_grad);
}

}  // namespace speedo::gpu
