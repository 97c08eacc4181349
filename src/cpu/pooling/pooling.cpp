#include "cpu/pooling/pooling.hpp"

#include <algorithm>
#include <cfloat>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "cpu/elementwise/elementwise.hpp"
#include "cpu/isa.hpp"
#include "cpu/pooling/pooling_block.hpp"
#include "cpu/pooling/pooling_codes.hpp"
#include "cpu/pooling/pooling_plane.hpp"
#include "cpu/support/aligned.hpp"

namespace speedo::cpu {
namespace {

// Planes per part of the work.
constexpr std::int64_t kPlanes = 4;

std::int64_t planes(const PoolingShape& shape) { return shape.batch * shape.channels; }

// Where planes are plain. `Code`: an index in a plane.
template <class Code>
class MaxPooling final : public Pooling {
 public:
  MaxPooling(const PoolingShape& shape, ThreadPool& pool, Scratch& scratch)
      : shape_(shape),
        plan_(shape),
        pool_(pool),
        scratch_(scratch),
        winners_(shape.trains ? planes(shape) * shape.dst_h * shape.dst_w : 0) {
    scratch_.reserve(aligned(plan_.frame_floats) + 2 * aligned(plan_.result_count + 16));
  }

  OperationInfo info() const override {
    return {.kernel = std::string(name(cpu_isa())), .workspace_bytes = winners_.bytes()};
  }

  Result<void> take_memory() override { return winners_.provide(); }

  void forward(const float* src, float* dst, float* mask) override {
    winners_.take();
    pool_.split(planes(shape_), kPlanes, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t plane = first; plane < last; ++plane) {
        forward_plane(plane, thread, src, dst, mask);
      }
    });
  }

  void backward(const float* /*src*/, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    const std::int64_t src_count = shape_.src_h * shape_.src_w;
    pool_.split(planes(shape_), kPlanes, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t plane = first; plane < last; ++plane) {
        fill(src_count, 0.0F, src_grad + plane * src_count);
        backward_plane(plane, dst_grad, src_grad + plane * src_count);
      }
    });
  }

 private:
  void forward_plane(std::int64_t plane, int thread, const float* src, float* dst, float* mask) {
    float* frame = scratch_.block(thread);
    float* best = frame + aligned(plan_.frame_floats);
    auto* place = reinterpret_cast<std::int32_t*>(best + aligned(plan_.result_count));
    const float* source = src + plane * shape_.src_h * shape_.src_w;
    if (plan_.framed) {
      fill_frame(plan_, -FLT_MAX, source, frame);
      source = frame;
    }
    max_windows(plan_, source, best, shape_.trains || mask != nullptr ? place : nullptr);
    const std::int64_t at = plane * shape_.dst_h * shape_.dst_w;
    for (std::int64_t y = 0; y < shape_.dst_h; ++y) {
      std::copy_n(best + y * plan_.pitch, shape_.dst_w, dst + at + y * shape_.dst_w);
    }
    if (shape_.trains) plane_winners(plan_, place, winners_.take() + at);
    if (mask != nullptr) write_mask(place, mask + at);
  }

  void write_mask(const std::int32_t* place, float* mask) const {
    for (std::int64_t y = 0; y < shape_.dst_h; ++y) {
      const std::int32_t* row = place + y * plan_.pitch;
      const std::int64_t start = plan_.row_start(y);
      for (std::int64_t x = 0; x < shape_.dst_w; ++x) {
        const std::int64_t index = row[x] < 0 ? -1 : start + x * shape_.stride_w + row[x];
        mask[y * shape_.dst_w + x] = static_cast<float>(index);
      }
    }
  }

  void backward_plane(std::int64_t plane, const float* dst_grad, float* target) {
    const std::int64_t count = shape_.dst_h * shape_.dst_w;
    const Code* winner = winners_.take() + plane * count;
    const float* grad = dst_grad + plane * count;
    for (std::int64_t i = 0; i < count; ++i) {
      if (winner[i] != WinnerCodes<Code>::kNone) target[winner[i]] += grad[i];
    }
  }

  PoolingShape shape_;
  PlanePlan plan_;
  ThreadPool& pool_;
  Scratch& scratch_;
  WinnerCodes<Code> winners_;
};

class AveragePooling final : public Pooling {
 public:
  AveragePooling(const PoolingShape& shape, ThreadPool& pool, Scratch& scratch)
      : shape_(shape), plan_(shape), pool_(pool), scratch_(scratch) {
    heights_ = window_sizes(shape.dst_h, shape.stride_h, shape.kernel_h, shape.src_h, shape.pad_h);
    widths_ = window_sizes(shape.dst_w, shape.stride_w, shape.kernel_w, shape.src_w, shape.pad_w);
    scratch_.reserve(aligned(plan_.frame_floats) + aligned(plan_.result_count));
  }

  OperationInfo info() const override { return {.kernel = std::string(name(cpu_isa()))}; }

  void forward(const float* src, float* dst, float* /*mask*/) override {
    pool_.split(planes(shape_), kPlanes, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t plane = first; plane < last; ++plane) {
        forward_plane(thread, src + plane * shape_.src_h * shape_.src_w,
                      dst + plane * shape_.dst_h * shape_.dst_w);
      }
    });
  }

  void backward(const float* /*src*/, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    pool_.split(planes(shape_), kPlanes, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t plane = first; plane < last; ++plane) {
        backward_plane(thread, dst_grad + plane * shape_.dst_h * shape_.dst_w,
                       src_grad + plane * shape_.src_h * shape_.src_w);
      }
    });
  }

 private:
  // Caffe's divisors: windows are clipped to the padded image, so the padding counts and what
  // overhangs it does not.
  static std::vector<float> window_sizes(std::int64_t count, std::int64_t stride,
                                         std::int64_t kernel, std::int64_t size, std::int64_t pad) {
    std::vector<float> sizes;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t begin = i * stride - pad;
      sizes.push_back(static_cast<float>(std::min(begin + kernel, size + pad) - begin));
    }
    return sizes;
  }

  void forward_plane(int thread, const float* src, float* dst) {
    float* frame = scratch_.block(thread);
    float* sum = frame + aligned(plan_.frame_floats);
    if (plan_.framed) {
      fill_frame(plan_, 0.0F, src, frame);
      src = frame;
    }
    sum_windows(plan_, src, sum);
    for (std::int64_t y = 0; y < shape_.dst_h; ++y) {
      const float height = heights_[static_cast<std::size_t>(y)];
      const float* row = sum + y * plan_.pitch;
      for (std::int64_t x = 0; x < shape_.dst_w; ++x) {
        dst[y * shape_.dst_w + x] = row[x] / (height * widths_[static_cast<std::size_t>(x)]);
      }
    }
  }

  void backward_plane(int thread, const float* dst_grad, float* src_grad) {
    float* frame = scratch_.block(thread);
    float* share = frame + aligned(plan_.frame_floats);
    float* target = plan_.framed ? frame : src_grad;
    std::fill_n(target, plan_.framed ? plan_.frame_floats : shape_.src_h * shape_.src_w, 0.0F);
    std::fill_n(share, plan_.result_count, 0.0F);
    for (std::int64_t y = 0; y < shape_.dst_h; ++y) {
      const float height = heights_[static_cast<std::size_t>(y)];
      float* row = share + y * plan_.pitch;
      for (std::int64_t x = 0; x < shape_.dst_w; ++x) {
        row[x] = dst_grad[y * shape_.dst_w + x] / (height * widths_[static_cast<std::size_t>(x)]);
      }
    }
    spread_windows(plan_, share, target);
    if (plan_.framed) read_frame(plan_, frame, src_grad);
  }

  PoolingShape shape_;
  PlanePlan plan_;
  ThreadPool& pool_;
  Scratch& scratch_;
  std::vector<float> heights_, widths_;  // of each window, clipped
};

}  // namespace

Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& asked, ThreadPool& pool,
                                              Scratch& scratch) {
  PoolingShape shape = asked;
  // What of a window lies beyond the padding counts for nothing.
  shape.kernel_h = std::min(shape.kernel_h, shape.src_h + 2 * shape.pad_h);
  shape.kernel_w = std::min(shape.kernel_w, shape.src_w + 2 * shape.pad_w);
  if (shape.kernel_h * shape.kernel_w > kPoolingWindowMax) {
    return Error{ErrorCode::kFull,
                 fmt::format("a pooling window of {} x {} has more than {} elements; use a smaller "
                             "kernel or image",
                             shape.kernel_h, shape.kernel_w, kPoolingWindowMax)};
  }
  // The stride after the only window may be anything, and nothing shall be sized by it.
  if (shape.dst_h == 1) shape.stride_h = 1;
  if (shape.dst_w == 1) shape.stride_w = 1;
  std::unique_ptr<Pooling> made;
  if (!shape.layout.is_plain()) {
    made = make_block_pooling(shape, pool);
  } else if (shape.method == PoolingShape::Method::kAverage) {
    made = std::make_unique<AveragePooling>(shape, pool, scratch);
  } else if (WinnerCodes<std::uint16_t>::suffice(shape.src_h * shape.src_w)) {
    made = std::make_unique<MaxPooling<std::uint16_t>>(shape, pool, scratch);
  } else {
    made = std::make_unique<MaxPooling<std::uint32_t>>(shape, pool, scratch);
  }
  return made;
}

}  // namespace speedo::cpu
