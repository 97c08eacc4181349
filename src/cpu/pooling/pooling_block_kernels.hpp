#pragma once

#include <cstdint>

namespace speedo::cpu {

// Elements of a window or windows of an element, along one axis: [first, last).
struct PoolingRange {
  std::int32_t first, last;
};

// One axis as the kernels see it.
struct PoolingAxis {
  std::int64_t src, dst, kernel, stride, pad;
  const PoolingRange* elements;  // of each window, clipped to the image
  const PoolingRange* windows;   // of each element

  // Of a window's first element; negative in the padding.
  std::int64_t start(std::int64_t window) const { return window * stride - pad; }
};

// What the kernels know of an operation. They count rows of the output (forward) or of the input
// (backward) through all planes.
struct BlockWindows {
  PoolingAxis y, x;
  std::int64_t block;
  std::int64_t code_pitch;  // codes of one position: block, rounded up to whole vectors

  std::int64_t src_floats() const { return y.src * x.src * block; }
  std::int64_t dst_floats() const { return y.dst * x.dst * block; }
};

// For rows [first, last) of the output. `codes`: the number within its window of each maximum, in
// row order; all ones where nothing is above -FLT_MAX.
void block_max(const BlockWindows& w, std::int64_t first, std::int64_t last, const float* src,
               float* dst);
void block_max(const BlockWindows& w, std::int64_t first, std::int64_t last, const float* src,
               float* dst, std::uint8_t* codes);
void block_max(const BlockWindows& w, std::int64_t first, std::int64_t last, const float* src,
               float* dst, std::uint32_t* codes);
// For rows [first, last) of the input.
void block_max_grad(const BlockWindows& w, std::int64_t first, std::int64_t last,
                    const float* dst_grad, const std::uint8_t* codes, float* src_grad);
void block_max_grad(const BlockWindows& w, std::int64_t first, std::int64_t last,
                    const float* dst_grad, const std::uint32_t* codes, float* src_grad);
// The same where no element is in two windows, for rows of the output.
void block_max_grad_tiles(const BlockWindows& w, std::int64_t first, std::int64_t last,
                          const float* dst_grad, const std::uint8_t* codes, float* src_grad);
// For rows of the output, then of the input. `shares`: one over the size of each window.
void block_average(const BlockWindows& w, std::int64_t first, std::int64_t last,
                   const float* shares, const float* src, float* dst);
void block_average_grad(const BlockWindows& w, std::int64_t first, std::int64_t last,
                        const float* shares, const float* dst_grad, float* src_grad);

}  // namespace speedo::cpu
