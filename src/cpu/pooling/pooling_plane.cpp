#include "cpu/pooling/pooling_plane.hpp"

#include <algorithm>
#include <cfloat>

#include "cpu/elementwise/elementwise.hpp"
#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pooling/pooling_plane.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// One row of one part of a frame: elements [first, last) come from the plane, every `stride`-th one
// from `src_start` on; the others are outside.
struct PartRow {
  std::int64_t first, last, src_start;
};

HWY_INLINE PartRow part_row(const PlanePlan& plan, std::int64_t part_column) {
  const PoolingShape& s = plan.shape;
  const std::int64_t before = std::max<std::int64_t>(0, s.pad_w - part_column);
  const std::int64_t first = divide_up(before, s.stride_w);
  const std::int64_t inside = s.pad_w + s.src_w - part_column;
  const std::int64_t last = inside <= 0 ? 0 : divide_up(inside, s.stride_w);
  return {std::min(first, plan.pitch), std::clamp(last, std::min(first, plan.pitch), plan.pitch),
          first * s.stride_w + part_column - s.pad_w};
}

// Calls visit(part, frame row, plane row or -1) for every row of every part.
template <class Frame, class Visit>
HWY_INLINE void for_each_frame_row(const PlanePlan& plan, Frame frame, const Visit& visit) {
  const PoolingShape& s = plan.shape;
  const std::int64_t part_floats = plan.part_rows * plan.pitch;
  for (std::int64_t column = 0; column < s.stride_w; ++column) {
    const PartRow part = part_row(plan, column);
    for (std::int64_t y = 0; y < s.stride_h * plan.part_rows; ++y) {
      const Frame row = frame + (y % s.stride_h * s.stride_w + column) * part_floats +
                        y / s.stride_h * plan.pitch;
      const std::int64_t src_y = y - s.pad_h;
      visit(part, row, src_y >= 0 && src_y < s.src_h ? src_y : -1);
    }
  }
}

// Every stride-th element of `source`.
HWY_INLINE void gather(std::int64_t n, std::int64_t stride, const float* source, float* target) {
  const F32 d;
  if (stride == 1) {
    for_each_vector(d, n, [&](std::int64_t at, auto access) {
      access.store(access.load(d, source + at), d, target + at);
    });
    return;
  }
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    const std::int64_t step = lanes(d);
    // The last element of the second vector is not taken, and may not be there.
    for (; i + step <= n; i += step) {
      const auto low = hn::LoadU(d, source + 2 * i);
      const auto high = Part(step - 1).load(d, source + 2 * i + step);
      hn::StoreU(hn::ConcatEven(d, high, low), d, target + i);
    }
    if (i == n) return;
    const std::int64_t rest = 2 * (n - i) - 1;
    const auto low = Part(std::min(rest, step)).load(d, source + 2 * i);
    const auto high = Part(std::max<std::int64_t>(0, rest - step)).load(d, source + 2 * i + step);
    Part(n - i).store(hn::ConcatEven(d, high, low), d, target + i);
    return;
  }
#endif
  for (; i < n; ++i) target[i] = source[stride * i];
}

HWY_INLINE void fill_row(std::int64_t n, float value, float* row) {
  const F32 d;
  for_each_vector(
      d, n, [&](std::int64_t i, auto access) { access.store(hn::Set(d, value), d, row + i); });
}

HWY_FLATTEN void fill_frame_kernel(const PlanePlan& plan, float outside, const float* src,
                                   float* frame) {
  const std::int64_t stride = plan.shape.stride_w, src_w = plan.shape.src_w, pitch = plan.pitch;
  for_each_frame_row(plan, frame, [&](const PartRow& part, float* row, std::int64_t y) {
    const std::int64_t first = y < 0 ? pitch : part.first;
    const std::int64_t last = y < 0 ? pitch : part.last;
    fill_row(first, outside, row);
    gather(last - first, stride, src + y * src_w + part.src_start, row + first);
    fill_row(pitch - last, outside, row + last);
  });
}

HWY_FLATTEN void read_frame_kernel(const PlanePlan& plan, const float* frame, float* src) {
  const std::int64_t stride = plan.shape.stride_w, src_w = plan.shape.src_w;
  fill_row(plan.shape.src_h * src_w, 0.0F, src);
  for_each_frame_row(plan, frame, [&](const PartRow& part, const float* row, std::int64_t y) {
    if (y < 0) return;
    float* target = src + y * src_w + part.src_start;
    for (std::int64_t i = part.first; i < part.last; ++i) {
      target[(i - part.first) * stride] = row[i];
    }
  });
}

// Several vectors of results at once, so that a window's element is not looked up for each.
template <int kVectors, class Access>
HWY_INLINE void max_vectors(std::int64_t i, Access access, const WindowWalk& walk,
                            const float* frame, float* best, std::int32_t* place) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  hn::Vec<F32> highest[kVectors];
  hn::Vec<decltype(di)> winner[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    highest[v] = hn::Set(d, -FLT_MAX);
    winner[v] = hn::Set(di, -1);
  }
  for (std::int64_t k = 0; k < walk.elements; ++k) {
    const float* from = frame + walk.offsets[k] + i;
    const auto here = hn::Set(di, walk.places[k]);
    for (int v = 0; v < kVectors; ++v) {
      const auto value = access.load(d, from + v * lanes(d));
      const auto wins = hn::Gt(value, highest[v]);
      highest[v] = hn::IfThenElse(wins, value, highest[v]);
      winner[v] = hn::IfThenElse(hn::RebindMask(di, wins), here, winner[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    access.store(highest[v], d, best + i + v * lanes(d));
    if (place == nullptr) continue;
    access.store(hn::BitCast(d, winner[v]), d, reinterpret_cast<float*>(place + i + v * lanes(d)));
  }
}

HWY_FLATTEN void plane_max_kernel(std::int64_t count, const WindowWalk& walk, const float* frame,
                                  float* best, std::int32_t* place) {
  const std::int64_t step = lanes(F32());
  std::int64_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    max_vectors<4>(i, Whole(), walk, frame, best, place);
  }
  for (; i + step <= count; i += step) max_vectors<1>(i, Whole(), walk, frame, best, place);
  if (i < count) max_vectors<1>(i, Part(count - i), walk, frame, best, place);
}

HWY_INLINE void store_winners(hn::Vec<hn::ScalableTag<std::uint32_t>> index, std::int64_t n,
                              std::uint16_t* to) {
  const hn::Rebind<std::uint16_t, hn::ScalableTag<std::uint32_t>> d;
  const auto narrow = hn::TruncateTo(d, index);
  if (n >= lanes(d)) {
    hn::StoreU(narrow, d, to);
  } else {
    HWY_ALIGN std::uint16_t buffer[hn::MaxLanes(d)];
    hn::Store(narrow, d, buffer);
    std::copy_n(buffer, n, to);
  }
}
HWY_INLINE void store_winners(hn::Vec<hn::ScalableTag<std::uint32_t>> index, std::int64_t n,
                              std::uint32_t* to) {
  const F32 d;
  Part(std::min(n, lanes(d))).store(hn::BitCast(d, index), d, reinterpret_cast<float*>(to));
}

template <class Code>
HWY_INLINE void winners(const PlanePlan& plan, const std::int32_t* places, Code* winners) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::ScalableTag<std::uint32_t> du;
  const PoolingShape& s = plan.shape;
  const std::int64_t width = s.dst_w, stride = plan.stride_w, pitch = plan.pitch;
  const auto none = hn::Set(d, -1);
  const auto steps = hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<std::int32_t>(stride)));
  for (std::int64_t y = 0; y < s.dst_h; ++y) {
    const std::int64_t start = plan.row_start(y);
    for (std::int64_t x = 0; x < width; x += lanes(d)) {
      const auto origin = hn::Set(d, static_cast<std::int32_t>(start + x * stride));
      const auto here = hn::LoadU(d, places + y * pitch + x);
      const auto index = hn::Add(hn::Add(origin, steps), here);
      store_winners(hn::BitCast(du, hn::IfThenElse(hn::Eq(here, none), none, index)), width - x,
                    winners + y * width + x);
    }
  }
}

HWY_FLATTEN void winners_short_kernel(const PlanePlan& plan, const std::int32_t* places,
                                      std::uint16_t* to) {
  winners(plan, places, to);
}
HWY_FLATTEN void winners_long_kernel(const PlanePlan& plan, const std::int32_t* places,
                                     std::uint32_t* to) {
  winners(plan, places, to);
}

HWY_FLATTEN void plane_sum_kernel(std::int64_t count, const WindowWalk& walk, const float* frame,
                                  float* sum) {
  const F32 d;
  for_each_vector(d, count, [&](std::int64_t i, auto access) {
    auto total = hn::Zero(d);
    for (std::int64_t k = 0; k < walk.elements; ++k) {
      total = hn::Add(total, access.load(d, frame + walk.offsets[k] + i));
    }
    access.store(total, d, sum + i);
  });
}

HWY_FLATTEN void spread_kernel(std::int64_t count, const WindowWalk& walk, const float* value,
                               float* frame) {
  const F32 d;
  for (std::int64_t k = 0; k < walk.elements; ++k) {
    float* target = frame + walk.offsets[k];
    for_each_vector(d, count, [&](std::int64_t i, auto access) {
      access.store(hn::Add(access.load(d, target + i), access.load(d, value + i)), d, target + i);
    });
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(fill_frame_kernel);
HWY_EXPORT(read_frame_kernel);
HWY_EXPORT(plane_max_kernel);
HWY_EXPORT(plane_sum_kernel);
HWY_EXPORT(spread_kernel);
HWY_EXPORT(winners_short_kernel);
HWY_EXPORT(winners_long_kernel);

}  // namespace

PlanePlan::PlanePlan(const PoolingShape& pooling) : shape(pooling), stride_w(pooling.stride_w) {
  const auto divide_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
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
      places.push_back(static_cast<std::int32_t>(y * shape.src_w + x));
    }
  }
}

void fill_frame(const PlanePlan& plan, float outside, const float* src, float* frame) {
  HWY_DYNAMIC_DISPATCH(fill_frame_kernel)(plan, outside, src, frame);
}

void read_frame(const PlanePlan& plan, const float* frame, float* src) {
  HWY_DYNAMIC_DISPATCH(read_frame_kernel)(plan, frame, src);
}

void max_windows(const PlanePlan& plan, const float* frame, float* best, std::int32_t* place) {
  HWY_DYNAMIC_DISPATCH(plane_max_kernel)
  (plan.result_count, plan.walk(), frame, best, place);
}

void plane_winners(const PlanePlan& plan, const std::int32_t* places, std::uint16_t* winners) {
  HWY_DYNAMIC_DISPATCH(winners_short_kernel)(plan, places, winners);
}
void plane_winners(const PlanePlan& plan, const std::int32_t* places, std::uint32_t* winners) {
  HWY_DYNAMIC_DISPATCH(winners_long_kernel)(plan, places, winners);
}

void sum_windows(const PlanePlan& plan, const float* frame, float* result) {
  const PoolingShape& s = plan.shape;
  if (!plan.framed && s.kernel_h == s.src_h && s.kernel_w == s.src_w) {
    *result = sum(s.src_h * s.src_w, frame);
    return;
  }
  HWY_DYNAMIC_DISPATCH(plane_sum_kernel)(plan.result_count, plan.walk(), frame, result);
}

void spread_windows(const PlanePlan& plan, const float* value, float* frame) {
  // A single window: all of it gets the same number.
  if (!plan.framed && plan.result_count == 1 && plan.shape.kernel_w == plan.shape.src_w) {
    map(affine(1.0F, *value), plan.shape.kernel_h * plan.shape.src_w, frame, frame);
    return;
  }
  HWY_DYNAMIC_DISPATCH(spread_kernel)(plan.result_count, plan.walk(), value, frame);
}

}  // namespace speedo::cpu
#endif
