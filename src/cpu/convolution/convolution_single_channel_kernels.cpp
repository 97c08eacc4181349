#include "cpu/convolution/convolution_single_channel_kernels.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/round_up.hpp>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/convolution/convolution_single_channel_kernels.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

constexpr int kVectorsMax = 4;  // of output channels
constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 ? 32 : 16;
constexpr int kSums = kRegisters / 4 * 3;  // held in them
// Taps that V vectors of channels are added to at once: with five, enough sums to hide an
// addition's latency with two vectors, and they divide 5 x 5; fewer where registers would not do
// for these, V and a tap's value.
template <int V>
constexpr int kTaps = std::min(5, (kRegisters - V - 1) / V);
// Rows that are read for one group of taps after another while they are in the first cache.
constexpr std::int64_t kRowBytes = 16 << 10;

// The channels of one position.
template <int V>
HWY_INLINE void store_position(const hn::Vec<F32>* sums, std::int64_t outputs, float* to) {
  const F32 d;
  const std::int64_t step = lanes(d);
  for (int v = 0; v + 1 < V; ++v) hn::StoreU(sums[v], d, to + v * step);
  const std::int64_t rest = outputs - (V - 1) * step;
  if (rest == step) {
    hn::StoreU(sums[V - 1], d, to + (V - 1) * step);
  } else {
    Part(rest).store(sums[V - 1], d, to + (V - 1) * step);
  }
}

// P positions of one row of the output.
template <int V, int P>
HWY_INLINE void forward_positions(const SingleChannelShape& s, const float* src,
                                  const float* weights, const float* bias, float slope,
                                  float* dst) {
  const F32 d;
  const std::int64_t step = lanes(d);
  hn::Vec<F32> sums[P][V];
#pragma GCC unroll 24
  for (int p = 0; p < P; ++p) {
    for (int v = 0; v < V; ++v) sums[p][v] = hn::Load(d, bias + v * step);
  }
  for (std::int64_t y = 0; y < s.kernel_height; ++y) {
    for (std::int64_t x = 0; x < s.kernel_width; ++x, weights += V * step) {
      hn::Vec<F32> w[V];
      for (int v = 0; v < V; ++v) w[v] = hn::Load(d, weights + v * step);
      const float* from = src + y * s.src_width + x;
#pragma GCC unroll 24
      for (int p = 0; p < P; ++p) {
        const auto value = hn::Set(d, from[p * s.stride_x]);
        for (int v = 0; v < V; ++v) sums[p][v] = hn::MulAdd(value, w[v], sums[p][v]);
      }
    }
  }
  const auto zero = hn::Zero(d);
#pragma GCC unroll 24
  for (int p = 0; p < P; ++p) {
    for (int v = 0; v < V; ++v) {
      const auto scaled = hn::Mul(hn::Set(d, slope), sums[p][v]);
      sums[p][v] = hn::IfThenElse(hn::Lt(sums[p][v], zero), scaled, sums[p][v]);
    }
    store_position<V>(sums[p], s.outputs, dst + p * s.outputs);
  }
}

template <int V>
HWY_FLATTEN void forward_rows(const SingleChannelShape& shape, const float* src,
                              const float* weights, const float* bias, float slope, float* dst) {
  const SingleChannelShape s = shape;
  constexpr int kPositions = kSums / V;
  for (std::int64_t y = 0; y < s.dst_height; ++y) {
    const float* row = src + y * s.stride_y * s.src_width;
    std::int64_t x = 0;
    for (; x + kPositions <= s.dst_width; x += kPositions) {
      forward_positions<V, kPositions>(s, row + x * s.stride_x, weights, bias, slope, dst);
      dst += kPositions * s.outputs;
    }
    for (; x < s.dst_width; ++x) {
      forward_positions<V, 1>(s, row + x * s.stride_x, weights, bias, slope, dst);
      dst += s.outputs;
    }
  }
}

// The channels of one position; those after the last are 0.
template <int V>
HWY_INLINE void load_position(const float* from, std::int64_t outputs, hn::Vec<F32>* values) {
  const F32 d;
  const std::int64_t step = lanes(d);
  for (int v = 0; v + 1 < V; ++v) values[v] = hn::LoadU(d, from + v * step);
  const std::int64_t rest = outputs - (V - 1) * step;
  const float* last = from + (V - 1) * step;
  values[V - 1] = rest == step ? hn::LoadU(d, last) : Part(rest).load(d, last);
}

// Adds what `rows` rows of the output give T taps that begin at `offsets` in the input. Without
// taps: the sum of the rows.
template <int V, int T>
HWY_INLINE void add_taps(const SingleChannelShape& s, std::int64_t rows,
                         const std::int64_t* offsets, const float* src, const float* dst_grad,
                         float* sums) {
  const F32 d;
  const std::int64_t step = lanes(d);
  constexpr int kHeld = T == 0 ? 1 : T;
  hn::Vec<F32> held[kHeld][V];
  const float* from[kHeld];
  for (int t = 0; t < kHeld; ++t) {
    from[t] = T == 0 ? src : src + offsets[t];
    for (int v = 0; v < V; ++v) held[t][v] = hn::Load(d, sums + (t * V + v) * step);
  }
  for (std::int64_t y = 0; y < rows; ++y) {
    for (std::int64_t x = 0; x < s.dst_width; ++x, dst_grad += s.outputs) {
      hn::Vec<F32> grad[V];
      load_position<V>(dst_grad, s.outputs, grad);
      const std::int64_t at = y * s.stride_y * s.src_width + x * s.stride_x;
      for (int t = 0; t < kHeld; ++t) {
        if (T == 0) {
          for (int v = 0; v < V; ++v) held[t][v] = hn::Add(held[t][v], grad[v]);
        } else {
          const auto value = hn::Set(d, from[t][at]);
          for (int v = 0; v < V; ++v) held[t][v] = hn::MulAdd(value, grad[v], held[t][v]);
        }
      }
    }
  }
  for (int t = 0; t < kHeld; ++t) {
    for (int v = 0; v < V; ++v) hn::Store(held[t][v], d, sums + (t * V + v) * step);
  }
}

template <int V>
HWY_FLATTEN void weights_rows(const SingleChannelShape& shape, const float* src,
                              const float* dst_grad, float* sums) {
  const SingleChannelShape s = shape;
  const std::int64_t width = V * lanes(F32());
  const std::int64_t row_floats = s.dst_width * s.outputs;
  const std::int64_t rows_at_once = std::max<std::int64_t>(
      kRowBytes / (row_floats * static_cast<std::int64_t>(sizeof(float))), 1);
  for (std::int64_t y = 0; y < s.dst_height; y += rows_at_once) {
    const std::int64_t rows = std::min(rows_at_once, s.dst_height - y);
    const float* from = src + y * s.stride_y * s.src_width;
    const float* grad = dst_grad + y * row_floats;
    std::int64_t tap = 0;
    for (; tap + kTaps<V> <= s.taps(); tap += kTaps<V>) {
      std::int64_t offsets[kTaps<V>];
      for (int t = 0; t < kTaps<V>; ++t) offsets[t] = s.src_offset(tap + t);
      add_taps<V, kTaps<V>>(s, rows, offsets, from, grad, sums + tap * width);
    }
    for (; tap < s.taps(); ++tap) {
      const std::int64_t offset = s.src_offset(tap);
      add_taps<V, 1>(s, rows, &offset, from, grad, sums + tap * width);
    }
    add_taps<V, 0>(s, rows, nullptr, from, grad, sums + tap * width);
  }
}

// Calls body(number of vectors as a constant).
template <class Body>
HWY_INLINE void with_vectors(std::int64_t outputs, const Body& body) {
  switch ((outputs + lanes(F32()) - 1) / lanes(F32())) {
    case 1:
      return body(std::integral_constant<int, 1>());
    case 2:
      return body(std::integral_constant<int, 2>());
    case 3:
      return body(std::integral_constant<int, 3>());
    default:
      return body(std::integral_constant<int, kVectorsMax>());
  }
}

void single_forward_kernel(const SingleChannelShape& shape, const float* src, const float* weights,
                           const float* bias, float slope, float* dst) {
  with_vectors(shape.outputs,
               [&](auto vectors) { forward_rows<vectors>(shape, src, weights, bias, slope, dst); });
}

void single_weights_kernel(const SingleChannelShape& shape, const float* src, const float* dst_grad,
                           float* sums) {
  with_vectors(shape.outputs,
               [&](auto vectors) { weights_rows<vectors>(shape, src, dst_grad, sums); });
}

std::int64_t width_kernel(std::int64_t outputs) {
  const std::int64_t step = lanes(F32());
  return outputs <= kVectorsMax * step ? round_up(outputs, step) : 0;
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {

HWY_EXPORT(single_forward_kernel);
HWY_EXPORT(single_weights_kernel);
HWY_EXPORT(width_kernel);

std::int64_t single_channel_width(std::int64_t outputs) {
  return HWY_DYNAMIC_DISPATCH(width_kernel)(outputs);
}

void single_channel_forward(const SingleChannelShape& shape, const float* src, const float* weights,
                            const float* bias, float slope, float* dst) {
  HWY_DYNAMIC_DISPATCH(single_forward_kernel)(shape, src, weights, bias, slope, dst);
}

void single_channel_backward_weights(const SingleChannelShape& shape, const float* src,
                                     const float* dst_grad, float* sums) {
  HWY_DYNAMIC_DISPATCH(single_weights_kernel)(shape, src, dst_grad, sums);
}

}  // namespace speedo::cpu
#endif
