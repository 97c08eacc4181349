// Each thread makes one result: forward an output from its window, backward a source element from
// the outputs whose windows have it. So nothing is added from several threads.

#include "gpu/pooling/pooling.hpp"

#include <cfloat>

#include <speedo/base/assert.hpp>

#include "gpu/launch/launch.hpp"
#include "gpu/pooling/pooling_windows.hpp"
#include "gpu/support/array_index.hpp"

namespace speedo::gpu {
namespace {

using Winner = std::int32_t;  // a place within a plane; -1: none

struct PoolingArrays {
  ArrayIndex src, dst;
  PoolingWindows windows;
};

struct MaximumKernel {
  static constexpr const char* kName = "pooling_maximum";
  std::int64_t n;
  PoolingArrays arrays;
  const float* src;
  float* dst;
  Winner* winners;  // null: not asked for
  float* mask;      // likewise

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const ArrayIndex::Place at = arrays.dst.place(i);
      if (at.channel >= arrays.dst.channels()) {
        dst[i] = 0.0F;
        continue;
      }
      float best = -FLT_MAX;
      std::int64_t winner = -1;
      arrays.windows.for_each_source(at.position, [&](std::int64_t place) {
        const float value = src[arrays.src.at({at.sample, at.channel, place})];
        if (value > best) {
          best = value;
          winner = place;
        }
        return true;
      });
      dst[i] = best;
      if (winners != nullptr) winners[i] = static_cast<Winner>(winner);
      if (mask != nullptr) mask[i] = static_cast<float>(winner);
    }
  }
};

struct AverageKernel {
  static constexpr const char* kName = "pooling_average";
  std::int64_t n;
  PoolingArrays arrays;
  const float* src;
  float* dst;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const ArrayIndex::Place at = arrays.dst.place(i);
      if (at.channel >= arrays.dst.channels()) {
        dst[i] = 0.0F;
        continue;
      }
      double sum = 0.0;
      arrays.windows.for_each_source(at.position, [&](std::int64_t place) {
        sum += static_cast<double>(src[arrays.src.at({at.sample, at.channel, place})]);
        return true;
      });
      dst[i] = static_cast<float>(sum) / arrays.windows.size(at.position);
    }
  }
};

struct PoolingGradientKernel {
  static constexpr const char* kName = "pooling_backward";
  std::int64_t n;
  PoolingArrays arrays;
  const Winner* winners;  // null: averages
  const float* dst_grad;
  float* src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const ArrayIndex::Place at = arrays.src.place(i);
      double sum = 0.0;
      if (at.channel < arrays.src.channels()) {
        arrays.windows.for_each_output(at.position, [&](std::int64_t output) {
          const std::int64_t from = arrays.dst.at({at.sample, at.channel, output});
          if (winners == nullptr) {
            sum += static_cast<double>(dst_grad[from] / arrays.windows.size(output));
          } else if (winners[from] == at.position) {
            sum += static_cast<double>(dst_grad[from]);
          }
        });
      }
      src_grad[i] = static_cast<float>(sum);
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
    const Grid grid = grid_for(dst_count());
    if (is_maximum()) {
      launch(queue_, grid, MaximumKernel{dst_count(), arrays(), src, dst, winners(), mask});
    } else {
      launch(queue_, grid, AverageKernel{dst_count(), arrays(), src, dst});
    }
  }

  void backward(const float* /*src*/, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    if (src_count() == 0) return;
    launch(queue_, grid_for(src_count()),
           PoolingGradientKernel{src_count(), arrays(), winners(), dst_grad, src_grad});
  }

 private:
  ArrayShape src_shape() const {
    return {shape_.batch, shape_.channels, shape_.src_h * shape_.src_w};
  }
  ArrayShape dst_shape() const {
    return {shape_.batch, shape_.channels, shape_.dst_h * shape_.dst_w};
  }
  std::int64_t src_count() const { return src_shape().storage_count(shape_.layout); }
  std::int64_t dst_count() const { return dst_shape().storage_count(shape_.layout); }
  bool is_maximum() const { return shape_.method == PoolingShape::Method::kMax; }
  std::int64_t bytes() const {
    if (!shape_.trains || !is_maximum()) return 0;
    return dst_count() * static_cast<std::int64_t>(sizeof(Winner));
  }
  PoolingArrays arrays() const {
    return {ArrayIndex(src_shape(), shape_.layout), ArrayIndex(dst_shape(), shape_.layout),
            PoolingWindows(shape_)};
  }
  Winner* winners() {
    if (bytes() == 0) return nullptr;
    SPEEDO_ASSERT(take_memory().has_value());
    return static_cast<Winner*>(memory_.data());
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
