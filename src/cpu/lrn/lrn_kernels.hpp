#pragma once

#include <algorithm>
#include <cstdint>

namespace speedo::cpu {

// scale = k + weight * sum of squares over a window; a number is multiplied with scale^-beta.
struct LrnNumbers {
  float k, weight, beta;
  // 2 weight beta: of x times the sum over the window of dy x scale^-(beta + 1), in the gradient.
  float gradient_weight() const { return 2.0F * weight * beta; }
};

// The part of a window of `size` elements that can be inside of `count`: a window that reaches over
// both ends from everywhere need not be larger.
inline std::int64_t lrn_reach(std::int64_t size, std::int64_t count) {
  return std::min(size, std::max<std::int64_t>(1, 2 * count - 1));
}

// Across channels, in plain order: `width` neighbouring positions of one sample. Pointers are to
// the first position in channel 0.
struct LrnTile {
  std::int64_t channels, size, spatial, width;
};
constexpr std::int64_t kLrnTile = 128;  // positions at most

inline std::int64_t lrn_tile_scratch(std::int64_t size) { return 2 * size * kLrnTile; }
void lrn_tile_forward(const LrnTile& tile, const LrnNumbers& numbers, const float* src, float* dst);
void lrn_tile_backward(const LrnTile& tile, const LrnNumbers& numbers, const float* src,
                       const float* dst_grad, float* src_grad, float* scratch);

// Across channels, in blocks: `positions` neighbouring positions of one sample, of `blocks` blocks
// `block_stride` floats apart. Pointers are to the first position in block 0.
struct LrnRows {
  std::int64_t channels, size, block, blocks, block_stride, positions;

  // Of a position's channels in scratch: with a margin on both sides, and room for a whole vector.
  std::int64_t pitch() const { return blocks * block + size / 2 * 2 + 16; }
};

inline std::int64_t lrn_rows_scratch(const LrnRows& rows) {
  return 3 * rows.positions * rows.pitch();
}
void lrn_rows_forward(const LrnRows& rows, const LrnNumbers& numbers, const float* src, float* dst,
                      float* scratch);
void lrn_rows_backward(const LrnRows& rows, const LrnNumbers& numbers, const float* src,
                       const float* dst_grad, float* src_grad, float* scratch);

// Within channels: one plane of h x w rows of `block` channels, in any layout. Windows are of
// `rows` x `columns` positions.
struct LrnPlane {
  std::int64_t h, w, block, rows, columns;

  std::int64_t row() const { return w * block; }
  // A row with a margin on both sides, and room for a whole vector.
  std::int64_t wide_row() const { return (w + columns / 2 * 2) * block + 16; }
};

inline std::int64_t lrn_plane_scratch(const LrnPlane& plane) {
  return plane.wide_row() + 2 * plane.rows * plane.row();
}
void lrn_plane_forward(const LrnPlane& plane, const LrnNumbers& numbers, const float* src,
                       float* dst, float* scratch);
void lrn_plane_backward(const LrnPlane& plane, const LrnNumbers& numbers, const float* src,
                        const float* dst_grad, float* src_grad, float* scratch);

}  // namespace speedo::cpu
