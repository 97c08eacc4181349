#pragma once

#include <cstdint>

namespace speedo::cpu {

// Vector kernels of convolution_few_channels.cpp: matrix products of a few rows, and the columns
// that convolutions become there. Rows of columns have `width` floats, a multiple of
// few_channels_panel(), and lie few_channels_pitch(width) apart; memory is 64-byte aligned.

// Floats side by side that the kernels hold for one row.
std::int64_t few_channels_panel();

// One cache line more than the row, so that rows do not fall on the same lines of the first cache.
constexpr std::int64_t few_channels_pitch(std::int64_t width) { return width + 16; }

// One sample, channels last. Column (y * kernel_width + x) * channels + c of a position is what tap
// (y, x) of its window sees in channel c, and 0 in the padding.
struct FewChannelsShape {
  std::int64_t channels, src_height, src_width, dst_width;
  std::int64_t kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x;
};

// The columns of positions [first, first + count) of the output, from `src` or added to it.
void few_channels_gather(const FewChannelsShape& shape, std::int64_t first, std::int64_t count,
                   std::int64_t width, const float* src, float* columns);
void few_channels_scatter(const FewChannelsShape& shape, std::int64_t first, std::int64_t count,
                    std::int64_t width, const float* columns, float* src_grad);

// c[rows][width] = a[rows][depth] b. `b`: in panels, [width / panel][depth][panel].
void few_channels_product(std::int64_t rows, std::int64_t depth, std::int64_t width, const float* a,
                    const float* b, float* c);
// c[rows][width] += transposed a[depth][rows] b[depth][width]
void few_channels_product_transposed(std::int64_t rows, std::int64_t depth, std::int64_t width,
                               const float* a, const float* b, float* c);

}  // namespace speedo::cpu
