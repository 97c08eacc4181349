#pragma once

#include <algorithm>
#include <cstdint>

#include <speedo/backend/backend.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Per-channel arithmetic on arrays of any layout, divided over the pool's threads; contracts as in
// Backend. The same result with any number of threads.

void scale_channels(ThreadPool& pool, const ChannelView& view, const ChannelScale& scale,
                    const float* x, float* y);
void sum_channels(ThreadPool& pool, const ChannelView& view, const float* x, const float* y_grad,
                  float* gamma_grad, float* beta_grad);
void prelu_forward(ThreadPool& pool, const ChannelView& view, const float* slope, const float* x,
                   float* y);

struct PreluGradient {
  const float* slope;
  const float* x;
  const float* y_grad;
  float* x_grad;
  float* slope_grad;
};
void prelu_backward(ThreadPool& pool, const ChannelView& view, const PreluGradient& gradient);

// An array as outer x blocks matrices of rows x block floats, one after another: column j of a
// matrix of block k is channel k block + j. Samples that need not be told apart are one matrix.
struct ChannelMatrices {
  std::int64_t outer = 0, blocks = 0, rows = 0, block = 1, channels = 0;

  explicit ChannelMatrices(const ChannelView& view);

  std::int64_t matrix_floats() const { return rows * block; }
  // Columns of block k that are channels; the others are padding.
  std::int64_t used(std::int64_t k) const { return std::min(block, channels - k * block); }

  // Calls body(k, offset, rows) for runs of rows of block k, `offset` floats into the array,
  // divided over the pool's threads.
  template <class Body>
  void split_rows(ThreadPool& pool, const Body& body) const {
    constexpr std::int64_t kGrainFloats = 16384;
    const std::int64_t grain = std::max<std::int64_t>(1, kGrainFloats / block);
    pool.split(outer * blocks * rows, grain, [&](std::int64_t first, std::int64_t last, int) {
      while (first < last) {
        const std::int64_t count = std::min(rows - first % rows, last - first);
        body(first / rows % blocks, first * block, count);
        first += count;
      }
    });
  }
};

}  // namespace speedo::cpu
