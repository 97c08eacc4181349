// Each thread makes one result: forward an output from its window, backward a source element from
// the outputs whose windows have it. So nothing is added from several threads.

#include "gpu/pooling/pooling.hpp"

#include <cfloat>

#include <speedo/base/assert.hpp>

#include "gpu/launch/launch.hpp"
#include "gpu/pooling/pooling_windows.hpp"

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
    std::int64_t position, other;
    bool is_padding;
  };
  SPEEDO_HOST_DEVICE At at(std::int64_t i) const {
    const std::int64_t n = area.quotient(i), within = i - n * area.value();
    const std::int64_t position = block.quotient(within);
    const std::int64_t channel = within - position * block.value();
    const bool is_padding = blocks.remainder(n) * block.value() + channel >= channels;
    return {position, n * other_area + channel, is_padding};
  }
  // Of the other image.
  SPEEDO_HOST_DEVICE std::int64_t other(const At& of, std::int64_t position) const {
    return of.other + position * block.value();
  }
};

// Which tap of its window each maximum is, in a byte where that suffices.
class WinnerTaps {
 public:
  static std::int64_t bytes_for(const PoolingWindows& windows) {
    return windows.taps() < kNoneInByte ? 1 : static_cast<std::int64_t>(sizeof(std::uint32_t));
  }
  // `memory`: null, if they are not asked for.
  WinnerTaps(void* memory, const PoolingWindows& windows)
      : bytes_(static_cast<std::uint8_t*>(bytes_for(windows) == 1 ? memory : nullptr)),
        words_(static_cast<std::uint32_t*>(bytes_for(windows) == 1 ? nullptr : memory)) {}

  // A tap of -1: none.
  SPEEDO_HOST_DEVICE void set(std::int64_t i, std::int64_t tap) const {
    if (bytes_ != nullptr) bytes_[i] = static_cast<std::uint8_t>(tap);
    if (words_ != nullptr) words_[i] = static_cast<std::uint32_t>(tap);
  }
  SPEEDO_HOST_DEVICE bool is(std::int64_t i, std::int64_t tap) const {
    return bytes_ != nullptr ? bytes_[i] == tap : words_[i] == tap;
  }

 private:
  static constexpr std::int64_t kNoneInByte = 255;
  std::uint8_t* bytes_;
  std::uint32_t* words_;
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
      std::int64_t winner = -1, winner_tap = -1;
      windows.for_each_source(at.position, [&](std::int64_t place, std::int64_t tap) {
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
      windows.for_each_source(at.position, [&](std::int64_t place, std::int64_t /*tap*/) {
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
        windows.for_each_output(at.position, [&](std::int64_t output, std::int64_t tap) {
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

class QueuedPooling final : public Pooling {
 public:
  QueuedPooling(Queue& queue, Device& device, const PoolingShape& shape)
      : queue_(queue), device_(device), shape_(shape) {}

  OperationInfo info() const override { return {.kernel = "cuda", .workspace_bytes = bytes()}; }

  Result<void> take_memory() override {
    if (memory_.bytes() > 0 || bytes() == 0) return {};
    SPEEDO_ASSIGN(memory_, device_.allocate(static_cast<std::size_t>(bytes())));
    return {};
  }

  void forward(const float* src, float* dst, float* mask) override {
    SPEEDO_ASSERT(mask == nullptr || shape_.layout.is_plain());
    if (dst_count() == 0) return;
    const PlaneElements elements(dst_shape(), src_shape().spatial, shape_.layout);
    const PoolingWindows windows(shape_);
    const Grid grid = grid_for(queue_, elements.count);
    if (is_maximum()) {
      launch(queue_, grid, MaximumKernel{elements, windows, src, dst, winners(), mask});
    } else {
      launch(queue_, grid, AverageKernel{elements, windows, src, dst});
    }
  }

  void backward(const float* /*src*/, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    if (dst_count() == 0) return;
    const PlaneElements elements(src_shape(), dst_shape().spatial, shape_.layout);
    launch(queue_, grid_for(queue_, elements.count),
           PoolingGradientKernel{elements, PoolingWindows(shape_), is_maximum(), winners(),
                                 dst_grad, src_grad});
  }

 private:
  ArrayShape src_shape() const {
    return {shape_.batch, shape_.channels, shape_.src_h * shape_.src_w};
  }
  ArrayShape dst_shape() const {
    return {shape_.batch, shape_.channels, shape_.dst_h * shape_.dst_w};
  }
  std::int64_t dst_count() const { return dst_shape().storage_count(shape_.layout); }
  bool is_maximum() const { return shape_.method == PoolingShape::Method::kMax; }
  std::int64_t bytes() const {
    if (!shape_.trains || !is_maximum() || dst_count() == 0) return 0;
    return dst_count() * WinnerTaps::bytes_for(PoolingWindows(shape_));
  }
  WinnerTaps winners() {
    SPEEDO_ASSERT(take_memory().has_value());
    return WinnerTaps(bytes() == 0 ? nullptr : memory_.data(), PoolingWindows(shape_));
  }

  Queue& queue_;
  Device& device_;
  const PoolingShape shape_;
  Buffer memory_;
};

}  // namespace

// It keeps where maxima were.
BackwardReads pooling_reads(const PoolingShape&) { return {}; }

std::unique_ptr<Pooling> make_pooling(Queue& queue, Device& device, const PoolingShape& shape) {
  return std::make_unique<QueuedPooling>(queue, device, shape);
}

}  // namespace speedo::gpu
