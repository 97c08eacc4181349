#include "cpu/pooling.hpp"

#include <algorithm>
#include <cfloat>
#include <vector>

#include "cpu/pooling_plane.hpp"

namespace speedo::cpu {
namespace {

std::int64_t round_up(std::int64_t count) { return (count + 15) / 16 * 16; }

// Planes per part of the work.
constexpr std::int64_t kGrain = 4;

class MaxPooling final : public Pooling {
 public:
  MaxPooling(const PoolingShape& shape, ThreadPool& pool, Scratch& scratch)
      : shape_(shape), plan_(shape), pool_(pool), scratch_(scratch) {}

  Result<void> prepare() {
    SPEEDO_TRY(scratch_.reserve(round_up(plan_.frame_floats) + 2 * round_up(plan_.result_count)));
    const std::int64_t count = shape_.planes * shape_.dst_h * shape_.dst_w;
    SPEEDO_ASSIGN(winners_, allocate(static_cast<std::size_t>(count) * sizeof(std::int32_t)));
    return {};
  }

  void forward(const float* src, float* dst, float* mask) override {
    pool_.split(shape_.planes, kGrain, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t plane = first; plane < last; ++plane) {
        forward_plane(plane, thread, src, dst, mask);
      }
    });
  }

  void backward(const float* dst_grad, float* src_grad) override {
    const std::int64_t dst_count = shape_.dst_h * shape_.dst_w;
    const std::int64_t src_count = shape_.src_h * shape_.src_w;
    pool_.split(shape_.planes, kGrain, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t plane = first; plane < last; ++plane) {
        const std::int32_t* winner = winners() + plane * dst_count;
        const float* grad = dst_grad + plane * dst_count;
        float* target = src_grad + plane * src_count;
        std::fill_n(target, src_count, 0.0F);
        for (std::int64_t i = 0; i < dst_count; ++i) {
          if (winner[i] >= 0) target[winner[i]] += grad[i];
        }
      }
    });
  }

 private:
  std::int32_t* winners() { return static_cast<std::int32_t*>(winners_.data()); }

  void forward_plane(std::int64_t plane, int thread, const float* src, float* dst, float* mask) {
    float* frame = scratch_.block(thread);
    float* best = frame + round_up(plan_.frame_floats);
    auto* code = reinterpret_cast<std::int32_t*>(best + round_up(plan_.result_count));
    const float* source = src + plane * shape_.src_h * shape_.src_w;
    if (plan_.framed) {
      fill_frame(plan_, -FLT_MAX, source, frame);
      source = frame;
    }
    max_windows(plan_, source, best, code);
    for (std::int64_t y = 0; y < shape_.dst_h; ++y) {
      const std::int64_t at = (plane * shape_.dst_h + y) * shape_.dst_w;
      const float* best_row = best + y * plan_.pitch;
      const std::int32_t* code_row = code + y * plan_.pitch;
      std::int32_t* winner_row = winners() + at;
      // The window's first element, as an index in the plane; in the padding it can be negative.
      const auto base = static_cast<std::int32_t>(
          (y * shape_.stride_h - shape_.pad_h) * shape_.src_w - shape_.pad_w);
      const auto stride = static_cast<std::int32_t>(shape_.stride_w);
      std::copy_n(best_row, shape_.dst_w, dst + at);
      for (std::int32_t x = 0; x < static_cast<std::int32_t>(shape_.dst_w); ++x) {
        winner_row[x] = code_row[x] < 0 ? -1 : base + x * stride + code_row[x];
      }
      if (mask == nullptr) continue;
      for (std::int64_t x = 0; x < shape_.dst_w; ++x) {
        mask[at + x] = static_cast<float>(winner_row[x]);
      }
    }
  }

  PoolingShape shape_;
  PlanePlan plan_;
  ThreadPool& pool_;
  Scratch& scratch_;
  Buffer winners_;  // index within its plane of each output's maximum, -1: none
};

class AveragePooling final : public Pooling {
 public:
  AveragePooling(const PoolingShape& shape, ThreadPool& pool, Scratch& scratch)
      : shape_(shape), plan_(shape), pool_(pool), scratch_(scratch) {
    heights_ = window_sizes(shape.dst_h, shape.stride_h, shape.kernel_h, shape.src_h, shape.pad_h);
    widths_ = window_sizes(shape.dst_w, shape.stride_w, shape.kernel_w, shape.src_w, shape.pad_w);
  }

  Result<void> prepare() {
    return scratch_.reserve(round_up(plan_.frame_floats) + round_up(plan_.result_count));
  }

  void forward(const float* src, float* dst, float* /*mask*/) override {
    pool_.split(shape_.planes, kGrain, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t plane = first; plane < last; ++plane) {
        forward_plane(thread, src + plane * shape_.src_h * shape_.src_w,
                      dst + plane * shape_.dst_h * shape_.dst_w);
      }
    });
  }

  void backward(const float* dst_grad, float* src_grad) override {
    pool_.split(shape_.planes, kGrain, [&](std::int64_t first, std::int64_t last, int thread) {
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
    float* sum = frame + round_up(plan_.frame_floats);
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
    float* share = frame + round_up(plan_.frame_floats);
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

template <class T>
Result<std::unique_ptr<Pooling>> make(const PoolingShape& shape, ThreadPool& pool,
                                      Scratch& scratch) {
  auto made = std::make_unique<T>(shape, pool, scratch);
  SPEEDO_TRY(made->prepare());
  return std::unique_ptr<Pooling>(std::move(made));
}

}  // namespace

Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape, ThreadPool& pool,
                                              Scratch& scratch) {
  return shape.method == PoolingShape::Method::kMax ? make<MaxPooling>(shape, pool, scratch)
                                                    : make<AveragePooling>(shape, pool, scratch);
}

}  // namespace speedo::cpu
