#include "cpu/convolution/convolution_by_channel_kernels.hpp"

#include <algorithm>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/convolution/convolution_by_channel_kernels.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

using V32 = hn::Vec<F32>;

struct Term {
  const float* values;
  float weight;
};

constexpr int kTermsMax = 16;
constexpr std::int64_t kSumVectors = 4;

// out = (out if it adds) + sum of weight values.
HWY_INLINE void combine(std::int64_t n, const Term* terms, int count, bool adds, float* out) {
  const F32 d;
  const std::int64_t step = lanes(d);
  std::int64_t i = 0;
  for (; i + kSumVectors * step <= n; i += kSumVectors * step) {
    V32 sums[kSumVectors];
    for (std::int64_t v = 0; v < kSumVectors; ++v) {
      sums[v] = adds ? hn::LoadU(d, out + i + v * step) : hn::Zero(d);
    }
    for (int t = 0; t < count; ++t) {
      const V32 weight = hn::Set(d, terms[t].weight);
      const float* values = terms[t].values + i;
      for (std::int64_t v = 0; v < kSumVectors; ++v) {
        sums[v] = hn::MulAdd(weight, hn::LoadU(d, values + v * step), sums[v]);
      }
    }
    for (std::int64_t v = 0; v < kSumVectors; ++v) hn::StoreU(sums[v], d, out + i + v * step);
  }
  for_each_vector(d, n - i, [&](std::int64_t at, auto access) {
    V32 sum = adds ? access.load(d, out + i + at) : hn::Zero(d);
    for (int t = 0; t < count; ++t) {
      sum = hn::MulAdd(hn::Set(d, terms[t].weight), access.load(d, terms[t].values + i + at), sum);
    }
    access.store(sum, d, out + i + at);
  });
}

// Terms of a sum, a few at a time.
class Terms {
 public:
  Terms(std::int64_t n, bool adds, float* out) : n_(n), out_(out), adds_(adds) {}
  HWY_INLINE void add(const float* values, float weight) {
    if (count_ == kTermsMax) flush();
    terms_[count_++] = {values, weight};
  }
  // Of none, where nothing is to be added to, it makes zeros.
  HWY_INLINE void finish() {
    if (count_ > 0 || !adds_) flush();
  }

 private:
  HWY_INLINE void flush() {
    combine(n_, terms_, count_, adds_, out_);
    adds_ = true;
    count_ = 0;
  }

  Term terms_[kTermsMax];
  std::int64_t n_;
  float* out_;
  int count_ = 0;
  bool adds_;
};

// Calls visit(kernel row, dst row) for what src row `y` is part of, dst rows falling.
template <class Visit>
HWY_INLINE void for_each_match(const ChannelAxis& a, std::int64_t y, const Visit& visit) {
  const std::int64_t reach = y + a.pad;
  const std::int64_t beyond = reach - (a.dst - 1) * a.stride;
  const std::int64_t low = beyond > 0 ? (beyond + a.dilation - 1) / a.dilation : 0;
  const std::int64_t end = std::min(a.kernel, reach / a.dilation + 1);
  if (a.dilation == 1) {
    for (std::int64_t k = low + (reach - low) % a.stride; k < end; k += a.stride) {
      visit(k, (reach - k) / a.stride);
    }
    return;
  }
  for (std::int64_t k = low; k < end; ++k) {
    const std::int64_t rest = reach - k * a.dilation;
    if (rest % a.stride == 0) visit(k, rest / a.stride);
  }
}

// Cuts a src row into its phases.
HWY_INLINE void to_phases(const ChannelPlane& plane, const float* row, float* phases) {
  const std::int64_t stride = plane.x.stride, pitch = plane.pitch;
  for (std::int64_t p = 0; p < stride; ++p) {
    float* to = phases + p * pitch + plane.margin;
    const std::int64_t count = plane.phase_count(p);
    if (stride == 1) {
      std::copy_n(row, count, to);
    } else if (stride == 2) {
      for (std::int64_t j = 0; j < count; ++j) to[j] = row[2 * j + p];
    } else {
      for (std::int64_t j = 0; j < count; ++j) to[j] = row[stride * j + p];
    }
  }
}

// The other way round, from rows without margins.
HWY_INLINE void from_phases(const ChannelPlane& plane, const float* phases, float* row) {
  const std::int64_t stride = plane.x.stride, pitch = plane.pitch;
  const std::int64_t whole = plane.phase_count(stride - 1);
  std::int64_t j = 0;
  if (stride == 2) {
    const F32 d;
    for (; j + lanes(d) <= whole; j += lanes(d)) {
      hn::StoreInterleaved2(hn::LoadU(d, phases + j), hn::LoadU(d, phases + pitch + j), d,
                            row + 2 * j);
    }
  }
  for (; j < whole; ++j) {
    for (std::int64_t p = 0; p < stride; ++p) row[stride * j + p] = phases[p * pitch + j];
  }
  for (std::int64_t i = whole * stride; i < plane.x.src; ++i) {
    row[i] = phases[(i - whole * stride) * pitch + whole];
  }
}

HWY_FLATTEN void down_kernel(const ChannelPlane& plane, const float* src, const float* weights,
                             float* dst, float* scratch) {
  const ChannelAxis y_axis = plane.y, x_axis = plane.x;
  std::fill_n(scratch, x_axis.stride * plane.pitch, 0.0F);
  for (std::int64_t y = 0; y < y_axis.src; ++y) {
    bool is_cut = false;
    for_each_match(y_axis, y, [&](std::int64_t k, std::int64_t o) {
      if (!is_cut) to_phases(plane, src + y * x_axis.src, scratch);
      is_cut = true;
      Terms terms(x_axis.dst, true, dst + o * x_axis.dst);
      for (const ChannelPlane::Tap& tap : plane.taps) {
        terms.add(scratch + tap.phase * plane.pitch + plane.margin + tap.shift,
                  weights[k * x_axis.kernel + tap.index]);
      }
      terms.finish();
    });
  }
}

// Keeps the dst rows that are in reach, with zeros before and behind.
class DstRows {
 public:
  DstRows(const ChannelPlane& plane, const float* dst, float* rows)
      : plane_(plane), dst_(dst), rows_(rows) {
    std::fill_n(rows, plane.kept_rows * plane.dst_pitch, 0.0F);
  }
  // Requires: `row` is less than kept_rows below the highest one asked for before.
  HWY_INLINE const float* at(std::int64_t row) {
    for (; next_ <= row; ++next_) {
      std::copy_n(dst_ + next_ * plane_.x.dst, plane_.x.dst, place(next_));
    }
    return place(row);
  }

 private:
  HWY_INLINE float* place(std::int64_t row) const {
    return rows_ + row % plane_.kept_rows * plane_.dst_pitch + plane_.dst_margin;
  }

  const ChannelPlane& plane_;
  const float* dst_;
  float* rows_;
  std::int64_t next_ = 0;
};

HWY_FLATTEN void up_kernel(const ChannelPlane& plane, const float* dst_grad, const float* weights,
                           float* src_grad, float* scratch) {
  const ChannelAxis y_axis = plane.y, x_axis = plane.x;
  DstRows rows(plane, dst_grad, scratch + x_axis.stride * plane.pitch);
  const bool is_direct = x_axis.stride == 1;
  for (std::int64_t y = 0; y < y_axis.src; ++y) {
    float* const row = src_grad + y * x_axis.src;
    auto tap = plane.taps.begin();
    for (std::int64_t p = 0; p < x_axis.stride; ++p) {
      const auto first = tap;
      while (tap != plane.taps.end() && tap->phase == p) ++tap;
      Terms terms(plane.phase_count(p), false, is_direct ? row : scratch + p * plane.pitch);
      for_each_match(y_axis, y, [&](std::int64_t k, std::int64_t o) {
        const float* const from = rows.at(o);
        for (auto it = first; it != tap; ++it) {
          terms.add(from - it->shift, weights[k * x_axis.kernel + it->index]);
        }
      });
      terms.finish();
    }
    if (!is_direct) from_phases(plane, scratch, row);
  }
}

// Adds to sums[i] the product of x and the i-th values; Count at once.
template <int Count>
HWY_INLINE void add_dots(std::int64_t n, const float* x, const Term* terms, float* const* sums) {
  const F32 d;
  V32 partial[Count];
  for (int t = 0; t < Count; ++t) partial[t] = hn::Zero(d);
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    const V32 value = access.load(d, x + i);
    for (int t = 0; t < Count; ++t) {
      partial[t] = hn::MulAdd(value, access.load(d, terms[t].values + i), partial[t]);
    }
  });
  for (int t = 0; t < Count; ++t) *sums[t] += hn::GetLane(hn::SumOfLanes(d, partial[t]));
}

HWY_FLATTEN void weights_kernel(const ChannelPlane& plane, const float* src, const float* dst_grad,
                                float* weights_grad, float* scratch) {
  constexpr int kAtOnce = 4;
  const ChannelAxis y_axis = plane.y, x_axis = plane.x;
  std::fill_n(scratch, x_axis.stride * plane.pitch, 0.0F);
  for (std::int64_t y = 0; y < y_axis.src; ++y) {
    bool is_cut = false;
    for_each_match(y_axis, y, [&](std::int64_t k, std::int64_t o) {
      if (!is_cut) to_phases(plane, src + y * x_axis.src, scratch);
      is_cut = true;
      const float* const grad = dst_grad + o * x_axis.dst;
      Term terms[kAtOnce];
      float* sums[kAtOnce];
      int count = 0;
      for (const ChannelPlane::Tap& tap : plane.taps) {
        terms[count].values = scratch + tap.phase * plane.pitch + plane.margin + tap.shift;
        sums[count++] = weights_grad + k * x_axis.kernel + tap.index;
        if (count < kAtOnce) continue;
        add_dots<kAtOnce>(x_axis.dst, grad, terms, sums);
        count = 0;
      }
      for (int t = 0; t < count; ++t) add_dots<1>(x_axis.dst, grad, terms + t, sums + t);
    });
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(down_kernel);
HWY_EXPORT(up_kernel);
HWY_EXPORT(weights_kernel);

}  // namespace

void by_channel_down(const ChannelPlane& plane, const float* src, const float* weights, float* dst,
                     float* scratch) {
  HWY_DYNAMIC_DISPATCH(down_kernel)(plane, src, weights, dst, scratch);
}

void by_channel_up(const ChannelPlane& plane, const float* dst_grad, const float* weights,
                   float* src_grad, float* scratch) {
  HWY_DYNAMIC_DISPATCH(up_kernel)(plane, dst_grad, weights, src_grad, scratch);
}

void by_channel_weights(const ChannelPlane& plane, const float* src, const float* dst_grad,
                        float* weights_grad, float* scratch) {
  HWY_DYNAMIC_DISPATCH(weights_kernel)(plane, src, dst_grad, weights_grad, scratch);
}

}  // namespace speedo::cpu
#endif
