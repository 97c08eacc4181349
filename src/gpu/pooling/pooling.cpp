#include "gpu/pooling/pooling.hpp"

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "gpu/pooling/pooling_kernels.hpp"

namespace speedo::gpu {
namespace {

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
    if (is_maximum()) {
      pool_maxima(queue_, shape_, src, dst, winners(), mask);
    } else {
      pool_averages(queue_, shape_, src, dst);
    }
  }

  void backward(const float* /*src*/, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    if (dst_count() == 0) return;
    pool_backward(queue_, shape_, winners(), dst_grad, src_grad);
  }

 private:
  std::int64_t dst_count() const {
    const ArrayShape dst{shape_.batch, shape_.channels, shape_.dst_h * shape_.dst_w};
    return dst.storage_count(shape_.layout);
  }
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

Result<std::unique_ptr<Pooling>> make_pooling(Queue& queue, Device& device,
                                              const PoolingShape& shape) {
  if (!PoolingWindows::have_room_for(shape)) {
    return Error{ErrorCode::kFull,
                 fmt::format("pooling of images of {} x {} with padding of {} and {} is more than "
                             "a GPU's kernels count to; use a smaller image or padding",
                             shape.src_h, shape.src_w, shape.pad_h, shape.pad_w)};
  }
  std::unique_ptr<Pooling> made = std::make_unique<QueuedPooling>(queue, device, shape);
  return made;
}

}  // namespace speedo::gpu
