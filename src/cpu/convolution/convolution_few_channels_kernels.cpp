#include "cpu/convolution/convolution_few_channels_kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/convolution/convolution_few_channels_kernels.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Sums held in registers: of the 32 or 16 that there are, some for the operands.
constexpr int kPanelRows = 6;
constexpr int kPanelVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

std::int64_t panel_kernel() { return kPanelVectors * lanes(F32()); }

// Element (row, term) of a matrix is data[row * row_step + term * term_step].
struct TileFactor {
  const float* data;
  std::int64_t row_step, term_step;
};

// Where a tile's rows lie, and whether they are added to what lies there.
struct TileTarget {
  float* data;
  std::int64_t pitch;
  bool adds;
};

// R rows of one panel: sum over `depth` of a's element of each row times b's vectors.
template <int R>
HWY_INLINE void product_tile(std::int64_t depth, TileFactor from, const float* b,
                             std::int64_t b_step, TileTarget target) {
  const float* a = from.data;
  const std::int64_t a_row = from.row_step, a_step = from.term_step;
  float* const c = target.data;
  const std::int64_t pitch = target.pitch;
  const bool adds = target.adds;
  const F32 d;
  const std::int64_t step = lanes(d);
  hn::Vec<F32> sums[R][kPanelVectors];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kPanelVectors; ++v) {
      sums[r][v] = adds ? hn::Load(d, c + r * pitch + v * step) : hn::Zero(d);
    }
  }
  for (std::int64_t k = 0; k < depth; ++k, a += a_step, b += b_step) {
    hn::Vec<F32> row[kPanelVectors];
    for (int v = 0; v < kPanelVectors; ++v) row[v] = hn::Load(d, b + v * step);
    for (int r = 0; r < R; ++r) {
      const auto value = hn::Set(d, a[r * a_row]);
      for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = hn::MulAdd(value, row[v], sums[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kPanelVectors; ++v) hn::Store(sums[r][v], d, c + r * pitch + v * step);
  }
}

// Calls body(first row, number of rows as a constant) for tiles of all rows.
template <class Body>
HWY_INLINE void for_each_tile(std::int64_t rows, const Body& body) {
  std::int64_t row = 0;
  for (; row + kPanelRows <= rows; row += kPanelRows) {
    body(row, std::integral_constant<int, kPanelRows>());
  }
  switch (rows - row) {
    case 1:
      return body(row, std::integral_constant<int, 1>());
    case 2:
      return body(row, std::integral_constant<int, 2>());
    case 3:
      return body(row, std::integral_constant<int, 3>());
    case 4:
      return body(row, std::integral_constant<int, 4>());
    case 5:
      return body(row, std::integral_constant<int, 5>());
    default:
      return;
  }
}

HWY_FLATTEN void product_kernel(std::int64_t rows, std::int64_t depth, std::int64_t width,
                                const float* a, const float* b, float* c) {
  const std::int64_t panel = panel_kernel(), pitch = few_channels_pitch(width);
  for (std::int64_t column = 0; column < width; column += panel, b += depth * panel) {
    for_each_tile(rows, [&](std::int64_t row, auto count) {
      product_tile<count>(depth, {a + row * depth, depth, 1}, b, panel,
                          {c + row * pitch + column, pitch, false});
    });
  }
}

HWY_FLATTEN void product_transposed_kernel(std::int64_t rows, std::int64_t depth,
                                           std::int64_t width, const float* a, const float* b,
                                           float* c) {
  const std::int64_t pitch = few_channels_pitch(width);
  for (std::int64_t column = 0; column < width; column += panel_kernel()) {
    for_each_tile(rows, [&](std::int64_t row, auto count) {
      product_tile<count>(depth, {a + row, 1, rows}, b + column, pitch,
                          {c + row * pitch + column, pitch, true});
    });
  }
}

// Calls body(offset in the sample, offset in the position's columns, floats) for each stretch of a
// kernel's row that lies in the image, and outside(offset in the columns, floats) for the rest.
template <class Body, class Outside>
HWY_INLINE void for_each_stretch(const FewChannelsShape& s, std::int64_t position, const Body& body,
                                 const Outside& outside) {
  const std::int64_t top = position / s.dst_width * s.stride_y - s.pad_y;
  const std::int64_t left = position % s.dst_width * s.stride_x - s.pad_x;
  const std::int64_t before = std::clamp<std::int64_t>(-left, 0, s.kernel_width) * s.channels;
  const std::int64_t row = s.kernel_width * s.channels;
  const std::int64_t end =
      std::clamp<std::int64_t>(s.src_width - left, 0, s.kernel_width) * s.channels;
  for (std::int64_t y = 0; y < s.kernel_height; ++y) {
    const bool is_inside = top + y >= 0 && top + y < s.src_height && before < end;
    if (!is_inside) {
      outside(y * row, row);
      continue;
    }
    const std::int64_t at = ((top + y) * s.src_width + left) * s.channels;
    outside(y * row, before);
    body(at + before, y * row + before, end - before);
    outside(y * row + end, row - end);
  }
}

HWY_FLATTEN void gather_kernel(const FewChannelsShape& shape, std::int64_t first,
                               std::int64_t count, std::int64_t width, const float* src,
                               float* columns) {
  const FewChannelsShape s = shape;
  const F32 d;
  for (std::int64_t i = 0; i < count; ++i, columns += few_channels_pitch(width)) {
    for_each_stretch(
        s, first + i,
        [&](std::int64_t from, std::int64_t to, std::int64_t floats) {
          for_each_vector(d, floats, [&](std::int64_t k, auto access) {
            access.store(access.load(d, src + from + k), d, columns + to + k);
          });
        },
        [&](std::int64_t to, std::int64_t floats) {
          for_each_vector(d, floats, [&](std::int64_t k, auto access) {
            access.store(hn::Zero(d), d, columns + to + k);
          });
        });
  }
}

HWY_FLATTEN void scatter_kernel(const FewChannelsShape& shape, std::int64_t first,
                                std::int64_t count, std::int64_t width, const float* columns,
                                float* src_grad) {
  const FewChannelsShape s = shape;
  const F32 d;
  for (std::int64_t i = 0; i < count; ++i, columns += few_channels_pitch(width)) {
    for_each_stretch(
        s, first + i,
        [&](std::int64_t to, std::int64_t from, std::int64_t floats) {
          for_each_vector(d, floats, [&](std::int64_t k, auto access) {
            float* target = src_grad + to + k;
            const auto sum = hn::Add(access.load(d, target), access.load(d, columns + from + k));
            access.store(sum, d, target);
          });
        },
        [](std::int64_t, std::int64_t) {});
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {

HWY_EXPORT(panel_kernel);
HWY_EXPORT(gather_kernel);
HWY_EXPORT(scatter_kernel);
HWY_EXPORT(product_kernel);
HWY_EXPORT(product_transposed_kernel);

std::int64_t few_channels_panel() { return HWY_DYNAMIC_DISPATCH(panel_kernel)(); }

void few_channels_gather(const FewChannelsShape& shape, std::int64_t first, std::int64_t count,
                         std::int64_t width, const float* src, float* columns) {
  HWY_DYNAMIC_DISPATCH(gather_kernel)(shape, first, count, width, src, columns);
}

void few_channels_scatter(const FewChannelsShape& shape, std::int64_t first, std::int64_t count,
                          std::int64_t width, const float* columns, float* src_grad) {
  HWY_DYNAMIC_DISPATCH(scatter_kernel)(shape, first, count, width, columns, src_grad);
}

void few_channels_product(std::int64_t rows, std::int64_t depth, std::int64_t width, const float* a,
                          const float* b, float* c) {
  HWY_DYNAMIC_DISPATCH(product_kernel)(rows, depth, width, a, b, c);
}

void few_channels_product_transposed(std::int64_t rows, std::int64_t depth, std::int64_t width,
                                     const float* a, const float* b, float* c) {
  HWY_DYNAMIC_DISPATCH(product_transposed_kernel)(rows, depth, width, a, b, c);
}

}  // namespace speedo::cpu
#endif
