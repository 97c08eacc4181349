#include "cpu/pooling_plane.hpp"

#include <algorithm>
#include <cfloat>

#include "base/simd.hpp"
#include "cpu/elementwise.hpp"

namespace speedo::cpu {
namespace {

// Results per pass, so that they stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// One row of one part of a frame: elements [first, last) come from the plane, every `stride`-th one
// from `src_start` on; the others are outside.
struct PartRow {
  std::int64_t first, last, src_start;
};

PartRow part_row(const PlanePlan& plan, std::int64_t part_column) {
  const PoolingShape& s = plan.shape;
  const std::int64_t before = std::max<std::int64_t>(0, s.pad_w - part_column);
  const std::int64_t first = divide_up(before, s.stride_w);
  const std::int64_t inside = s.pad_w + s.src_w - part_column;
  const std::int64_t last = inside <= 0 ? 0 : divide_up(inside, s.stride_w);
  return {std::min(first, plan.pitch), std::clamp(last, std::min(first, plan.pitch), plan.pitch),
          first * s.stride_w + part_column - s.pad_w};
}

// Calls visit(part, frame row, plane row or -1, part column) for every row of every part.
template <class Visit>
void for_each_row(const PlanePlan& plan, float* frame, const Visit& visit) {
  const PoolingShape& s = plan.shape;
  const std::int64_t part_floats = plan.part_rows * plan.pitch;
  for (std::int64_t column = 0; column < s.stride_w; ++column) {
    const PartRow part = part_row(plan, column);
    for (std::int64_t y = 0; y < s.stride_h * plan.part_rows; ++y) {
      float* row = frame + (y % s.stride_h * s.stride_w + column) * part_floats +
                   y / s.stride_h * plan.pitch;
      const std::int64_t src_y = y - s.pad_h;
      visit(part, row, src_y >= 0 && src_y < s.src_h ? src_y : -1);
    }
  }
}

SPEEDO_MULTIVERSION
void gather(std::int64_t n, std::int64_t stride, const float* source, float* target) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) target[i] = source[i];
  } else if (stride == 2) {
    for (std::int64_t i = 0; i < n; ++i) target[i] = source[2 * i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) target[i] = source[stride * i];
  }
}

SPEEDO_MULTIVERSION
void max_blocks(std::int64_t count, std::int64_t elements, const std::int64_t* offsets,
                const std::int32_t* codes, const float* frame, float* best, std::int32_t* code) {
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t n = count - at < kBlock ? count - at : kBlock;
    float* b = best + at;
    std::int32_t* c = code + at;
    for (std::int64_t i = 0; i < n; ++i) b[i] = -FLT_MAX;
    for (std::int64_t i = 0; i < n; ++i) c[i] = -1;
    for (std::int64_t k = 0; k < elements; ++k) {
      const float* source = frame + offsets[k] + at;
      const std::int32_t code_here = codes[k];
      for (std::int64_t i = 0; i < n; ++i) {
        const float value = source[i];
        const bool wins = value > b[i];
        c[i] = wins ? code_here : c[i];
        b[i] = wins ? value : b[i];
      }
    }
  }
}

SPEEDO_MULTIVERSION
void sum_blocks(std::int64_t count, std::int64_t elements, const std::int64_t* offsets,
                const float* frame, float* sum) {
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t n = count - at < kBlock ? count - at : kBlock;
    float* s = sum + at;
    for (std::int64_t i = 0; i < n; ++i) s[i] = 0.0F;
    for (std::int64_t k = 0; k < elements; ++k) {
      const float* source = frame + offsets[k] + at;
      for (std::int64_t i = 0; i < n; ++i) s[i] += source[i];
    }
  }
}

SPEEDO_MULTIVERSION
void spread_blocks(std::int64_t count, std::int64_t elements, const std::int64_t* offsets,
                   const float* value, float* frame) {
  for (std::int64_t k = 0; k < elements; ++k) {
    float* target = frame + offsets[k];
    for (std::int64_t i = 0; i < count; ++i) target[i] += value[i];
  }
}

}  // namespace

PlanePlan::PlanePlan(const PoolingShape& pooling) : shape(pooling) {
  const std::int64_t height = (shape.dst_h - 1) * shape.stride_h + shape.kernel_h;
  const std::int64_t width = (shape.dst_w - 1) * shape.stride_w + shape.kernel_w;
  const bool dense = shape.dst_h * shape.dst_w == 1 || (shape.stride_h == 1 && shape.stride_w == 1);
  framed =
      !dense || shape.pad_h > 0 || shape.pad_w > 0 || height > shape.src_h || width > shape.src_w;
  if (!framed) shape.stride_h = shape.stride_w = 1;  // A single window has no step.
  part_rows = divide_up(height, shape.stride_h);
  pitch = framed ? divide_up(width, shape.stride_w) : shape.src_w;
  frame_floats = shape.stride_h * shape.stride_w * part_rows * pitch;
  result_count = (shape.dst_h - 1) * pitch + shape.dst_w;
  for (std::int64_t y = 0; y < shape.kernel_h; ++y) {
    for (std::int64_t x = 0; x < shape.kernel_w; ++x) {
      const std::int64_t part = y % shape.stride_h * shape.stride_w + x % shape.stride_w;
      offsets.push_back(part * part_rows * pitch + y / shape.stride_h * pitch + x / shape.stride_w);
      codes.push_back(static_cast<std::int32_t>(y * shape.src_w + x));
    }
  }
}

void fill_frame(const PlanePlan& plan, float outside, const float* src, float* frame) {
  for_each_row(plan, frame, [&](const PartRow& part, float* row, std::int64_t y) {
    const std::int64_t first = y < 0 ? plan.pitch : part.first;
    const std::int64_t last = y < 0 ? plan.pitch : part.last;
    for (std::int64_t i = 0; i < first; ++i) row[i] = outside;
    gather(last - first, plan.shape.stride_w, src + y * plan.shape.src_w + part.src_start,
           row + first);
    for (std::int64_t i = last; i < plan.pitch; ++i) row[i] = outside;
  });
}

void read_frame(const PlanePlan& plan, const float* frame, float* src) {
  std::fill_n(src, plan.shape.src_h * plan.shape.src_w, 0.0F);
  for_each_row(plan, const_cast<float*>(frame),
               [&](const PartRow& part, const float* row, std::int64_t y) {
                 if (y < 0) return;
                 float* target = src + y * plan.shape.src_w + part.src_start;
                 for (std::int64_t i = part.first; i < part.last; ++i) {
                   target[(i - part.first) * plan.shape.stride_w] = row[i];
                 }
               });
}

void max_windows(const PlanePlan& plan, const float* frame, float* best, std::int32_t* code) {
  max_blocks(plan.result_count, static_cast<std::int64_t>(plan.offsets.size()), plan.offsets.data(),
             plan.codes.data(), frame, best, code);
}

void sum_windows(const PlanePlan& plan, const float* frame, float* result) {
  const PoolingShape& s = plan.shape;
  if (!plan.framed && s.kernel_h == s.src_h && s.kernel_w == s.src_w) {
    *result = sum(s.src_h * s.src_w, frame);
    return;
  }
  sum_blocks(plan.result_count, static_cast<std::int64_t>(plan.offsets.size()), plan.offsets.data(),
             frame, result);
}

void spread_windows(const PlanePlan& plan, const float* value, float* frame) {
  spread_blocks(plan.result_count, static_cast<std::int64_t>(plan.offsets.size()),
                plan.offsets.data(), value, frame);
}

}  // namespace speedo::cpu
