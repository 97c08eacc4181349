// A plane is H x W rows of `block` channels. Maxima remember which element of its window won, one
// byte each where that suffices; the backward pass gathers: each element adds up what its windows
// hand it, so it is written once, and windows may overlap without threads meeting.

#include "cpu/pooling/pooling_block_kernels.hpp"

#include <cfloat>
#include <type_traits>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/pooling/pooling_block_kernels.cpp"
#endif
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE void store_codes(D /*d*/, hn::Vec<D> codes, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, D> bytes;
  hn::StoreU(hn::TruncateTo(bytes, codes), bytes, to);
}
template <class D>
HWY_INLINE void store_codes(D d, hn::Vec<D> codes, std::uint32_t* to) {
  hn::StoreU(codes, d, to);
}
template <class D>
HWY_INLINE hn::Vec<D> load_codes(D d, const std::uint8_t* from) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint8_t, D>(), from));
}
template <class D>
HWY_INLINE hn::Vec<D> load_codes(D d, const std::uint32_t* from) {
  return hn::LoadU(d, from);
}

// Calls body(count) with a constant for the counts that occur most: its loops are then unrolled.
template <int kCount>
using Constant = std::integral_constant<int, kCount>;
template <class Body>
HWY_INLINE void with_count(std::int64_t count, const Body& body) {
  switch (count) {
    case 1:
      return body(Constant<1>());
    case 2:
      return body(Constant<2>());
    case 3:
      return body(Constant<3>());
    default:
      return body(static_cast<int>(count));
  }
}

// b where a is NaN, else the larger one.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V larger(D /*d*/, V a, V b) {
#if HWY_ARCH_X86
  return hn::Max(a, b);  // so it is on x86
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}

// A window: its rows lie `row_stride` floats apart, its columns `step`; its elements are numbered
// from `code` on, with rows `row_codes` apart. All but the strides may be constants.
template <class Code, class RowCodes, class Rows, class Columns>
struct WindowForm {
  std::int64_t row_stride, step;
  Code code;
  RowCodes row_codes;
  Rows rows;
  Columns columns;
};

// The maximum, Caffe's way: from -FLT_MAX on; a NaN never wins. Each row is a chain of its own.
template <class D, class Access, class Form>
HWY_INLINE hn::Vec<D> maximum(D d, Access access, const float* first, Form form) {
  const std::int64_t row_stride = form.row_stride, step = form.step;
  const auto rows = form.rows;
  const auto columns = form.columns;
  auto best = hn::Set(d, -FLT_MAX);
  for (int y = 0; y < rows; ++y) {
    auto row_best = hn::Set(d, -FLT_MAX);
    for (int x = 0; x < columns; ++x) {
      row_best = larger(d, access.load(d, first + y * row_stride + x * step), row_best);
    }
    best = larger(d, row_best, best);
  }
  return best;
}

// The number of the first element that equals the maximum; all ones where nothing is above
// -FLT_MAX. Goes backwards, so that the first one is what remains.
template <class D, class Access, class Form>
HWY_INLINE auto winner(D d, Access access, hn::Vec<D> best, const float* first, Form form) {
  const std::int64_t row_stride = form.row_stride, step = form.step;
  const auto code = form.code;
  const auto row_codes = form.row_codes;
  const auto rows = form.rows;
  const auto columns = form.columns;
  const hn::RebindToUnsigned<D> du;
  auto result = hn::Set(du, 0U);
  for (int y = rows - 1; y >= 0; --y) {
    for (int x = columns - 1; x >= 0; --x) {
      const auto value = access.load(d, first + y * row_stride + x * step);
      const auto is_best = hn::RebindMask(du, hn::Eq(value, best));
      const auto here = hn::Set(du, static_cast<std::uint32_t>(code + y * row_codes + x));
      result = hn::IfThenElse(is_best, here, result);
    }
  }
  const auto is_any = hn::RebindMask(du, hn::Gt(best, hn::Set(d, -FLT_MAX)));
  return hn::IfThenElse(is_any, result, hn::Set(du, ~0U));
}

// Windows jump from row to row, which the processor does not foresee: without this, reading waits
// for memory most of the time.
HWY_INLINE void prefetch(const float* from, std::int64_t floats) {
  constexpr std::int64_t kLine = 16;
  for (std::int64_t i = 0; i < floats; i += kLine) hwy::Prefetch(from + i);
}

// `codes`: null, or the number within its window of each maximum.
template <class Code>
HWY_INLINE void max_rows(const BlockWindows& windows, std::int64_t first, std::int64_t last,
                         const float* src, float* dst, Code* codes) {
  const BlockWindows w = windows;  // A copy: writing bytes may change anything that has an address.
  const std::int64_t row_stride = w.x.src * w.block;
  with_row_tag(w.block, [&](auto d) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t oy = row % w.y.dst;
      const auto ys = w.y.elements[oy];
      const float* plane_row = src + row / w.y.dst * w.src_floats() + ys.first * row_stride;
      const std::int64_t row_code = (ys.first - w.y.start(oy)) * w.x.kernel;
      for (std::int64_t ox = 0; ox < w.x.dst; ++ox) {
        const auto xs = w.x.elements[ox];
        const std::int64_t code = row_code + xs.first - w.x.start(ox);
        const float* from = plane_row + xs.first * w.block;
        float* to = dst + (row * w.x.dst + ox) * w.block;
        Code* code_to = codes == nullptr ? nullptr : codes + (row * w.x.dst + ox) * w.code_pitch;
        const auto window = [&](auto first_code, auto row_codes, auto rows, auto columns) {
          const WindowForm<decltype(first_code), decltype(row_codes), decltype(rows),
                           decltype(columns)>
              form{row_stride, w.block, first_code, row_codes, rows, columns};
          for_each_vector(d, w.block, [&](std::int64_t c, auto access) {
            const auto best = maximum(d, access, from + c, form);
            access.store(best, d, to + c);
            if (codes == nullptr) return;
            store_codes(hn::RebindToUnsigned<decltype(d)>(),
                        winner(d, access, best, from + c, form), code_to + c);
          });
        };
        const std::int64_t rows = ys.last - ys.first, columns = xs.last - xs.first;
        for (std::int64_t i = 0; i < w.y.stride; ++i) {
          prefetch(from + (rows + i) * row_stride, w.x.stride * w.block);
        }
        const bool is_whole = rows == w.y.kernel && columns == w.x.kernel;
        if (is_whole && rows == 3 && columns == 3) {
          window(Constant<0>(), Constant<3>(), Constant<3>(), Constant<3>());
        } else if (is_whole && rows == 2 && columns == 2) {
          window(Constant<0>(), Constant<2>(), Constant<2>(), Constant<2>());
        } else {
          window(code, w.x.kernel, static_cast<int>(rows), static_cast<int>(columns));
        }
      }
    }
  });
}

template <class Code>
HWY_INLINE void max_grad_rows(const BlockWindows& windows, std::int64_t first, std::int64_t last,
                              const float* dst_grad, const Code* codes, float* src_grad) {
  const BlockWindows w = windows;
  with_row_tag(w.block, [&](auto d) {
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto window_step = hn::Set(du, static_cast<std::uint32_t>(w.x.stride));
    const auto row_step = hn::Set(du, static_cast<std::uint32_t>(w.y.stride * w.x.kernel));
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t y = row % w.y.src;
      const auto ys = w.y.windows[y];
      const std::int64_t line = (row / w.y.src * w.y.dst + ys.first) * w.x.dst;
      const std::int64_t line_code = (y - w.y.start(ys.first)) * w.x.kernel;
      for (std::int64_t x = 0; x < w.x.src; ++x) {
        const auto xs = w.x.windows[x];
        const auto code = static_cast<std::uint32_t>(line_code + x - w.x.start(xs.first));
        float* to = src_grad + (row * w.x.src + x) * w.block;
        const std::int64_t ahead = line + (ys.last - ys.first + 1) * w.x.dst + xs.first;
        prefetch(dst_grad + ahead * w.block, w.block);
        with_count(xs.last - xs.first, [&](auto columns) {
          for_each_vector(d, w.block, [&](std::int64_t c, auto access) {
            auto sum = hn::Zero(d);
            auto row_code = hn::Set(du, code);
            for (int i = 0; i < ys.last - ys.first; ++i) {
              const std::int64_t at = line + i * w.x.dst + xs.first;
              const float* grad = dst_grad + at * w.block + c;
              const Code* from = codes + at * w.code_pitch + c;
              auto here = row_code;
              for (int j = 0; j < columns; ++j) {
                const auto won = hn::Eq(load_codes(du, from + j * w.code_pitch), here);
                const auto value = access.load(d, grad + j * w.block);
                sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(d, won), value));
                here = hn::Sub(here, window_step);
              }
              row_code = hn::Sub(row_code, row_step);
            }
            access.store(sum, d, to + c);
          });
        });
      }
    }
  });
}

// The same where every element is in one window at most, for the windows of rows of the output; the
// last row of a plane also clears what lies behind it.
template <class Code>
HWY_INLINE void max_grad_tiles(const BlockWindows& windows, std::int64_t first, std::int64_t last,
                               const float* dst_grad, const Code* codes, float* src_grad) {
  const BlockWindows w = windows;
  const std::int64_t row_stride = w.x.src * w.block;
  with_row_tag(w.block, [&](auto d) {
    const hn::RebindToUnsigned<decltype(d)> du;
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t oy = row % w.y.dst;
      const auto ys = w.y.elements[oy];
      float* plane = src_grad + row / w.y.dst * w.src_floats();
      for (std::int64_t ox = 0; ox < w.x.dst; ++ox) {
        const auto xs = w.x.elements[ox];
        const std::int64_t at = row * w.x.dst + ox;
        const std::int64_t code =
            (ys.first - w.y.start(oy)) * w.x.kernel + xs.first - w.x.start(ox);
        float* to = plane + ys.first * row_stride + xs.first * w.block;
        with_count(xs.last - xs.first, [&](auto columns) {
          for_each_vector(d, w.block, [&](std::int64_t c, auto access) {
            const auto grad = access.load(d, dst_grad + at * w.block + c);
            const auto won = load_codes(du, codes + at * w.code_pitch + c);
            for (int y = 0; y < ys.last - ys.first; ++y) {
              auto here = hn::Set(du, static_cast<std::uint32_t>(code + y * w.x.kernel));
              for (int x = 0; x < columns; ++x) {
                const auto wins = hn::RebindMask(d, hn::Eq(won, here));
                access.store(hn::IfThenElseZero(wins, grad), d,
                             to + y * row_stride + x * w.block + c);
                here = hn::Add(here, hn::Set(du, 1U));
              }
            }
          });
        });
      }
      const std::int64_t covered = w.x.elements[w.x.dst - 1].last;
      for (std::int64_t y = ys.first; y < ys.last; ++y) {
        std::fill(plane + y * row_stride + covered * w.block, plane + (y + 1) * row_stride, 0.0F);
      }
      if (oy + 1 == w.y.dst) {
        std::fill(plane + ys.last * row_stride, plane + w.src_floats(), 0.0F);
      }
    }
  });
}

HWY_FLATTEN void max_kernel(const BlockWindows& w, std::int64_t first, std::int64_t last,
                            const float* src, float* dst) {
  max_rows<std::uint8_t>(w, first, last, src, dst, nullptr);
}
HWY_FLATTEN void max_bytes_kernel(const BlockWindows& w, std::int64_t first, std::int64_t last,
                                  const float* src, float* dst, std::uint8_t* codes) {
  max_rows(w, first, last, src, dst, codes);
}
HWY_FLATTEN void max_words_kernel(const BlockWindows& w, std::int64_t first, std::int64_t last,
                                  const float* src, float* dst, std::uint32_t* codes) {
  max_rows(w, first, last, src, dst, codes);
}
HWY_FLATTEN void max_grad_bytes_kernel(const BlockWindows& w, std::int64_t first, std::int64_t last,
                                       const float* dst_grad, const std::uint8_t* codes,
                                       float* src_grad) {
  max_grad_rows(w, first, last, dst_grad, codes, src_grad);
}
HWY_FLATTEN void max_grad_words_kernel(const BlockWindows& w, std::int64_t first, std::int64_t last,
                                       const float* dst_grad, const std::uint32_t* codes,
                                       float* src_grad) {
  max_grad_rows(w, first, last, dst_grad, codes, src_grad);
}

HWY_FLATTEN void max_grad_tiles_kernel(const BlockWindows& w, std::int64_t first, std::int64_t last,
                                       const float* dst_grad, const std::uint8_t* codes,
                                       float* src_grad) {
  max_grad_tiles(w, first, last, dst_grad, codes, src_grad);
}

// `shares`: one over the size of each window.
HWY_FLATTEN void average_kernel(const BlockWindows& windows, std::int64_t first, std::int64_t last,
                                const float* shares, const float* src, float* dst) {
  const BlockWindows w = windows;
  const std::int64_t row_stride = w.x.src * w.block;
  with_row_tag(w.block, [&](auto d) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t oy = row % w.y.dst;
      const auto ys = w.y.elements[oy];
      const float* plane_row = src + row / w.y.dst * w.src_floats() + ys.first * row_stride;
      for (std::int64_t ox = 0; ox < w.x.dst; ++ox) {
        const auto xs = w.x.elements[ox];
        const float* from = plane_row + xs.first * w.block;
        const auto share = hn::Set(d, shares[oy * w.x.dst + ox]);
        float* to = dst + (row * w.x.dst + ox) * w.block;
        for (std::int64_t i = 0; i < w.y.stride; ++i) {
          prefetch(from + (ys.last - ys.first + i) * row_stride, w.x.stride * w.block);
        }
        with_count(xs.last - xs.first, [&](auto columns) {
          for_each_vector(d, w.block, [&](std::int64_t c, auto access) {
            auto sum = hn::Zero(d);
            for (int y = 0; y < ys.last - ys.first; ++y) {
              for (int x = 0; x < columns; ++x) {
                const float* at = from + y * row_stride + x * w.block + c;
                sum = hn::Add(sum, access.load(d, at));
              }
            }
            access.store(hn::Mul(sum, share), d, to + c);
          });
        });
      }
    }
  });
}

HWY_FLATTEN void average_grad_kernel(const BlockWindows& windows, std::int64_t first,
                                     std::int64_t last, const float* shares, const float* dst_grad,
                                     float* src_grad) {
  const BlockWindows w = windows;
  with_row_tag(w.block, [&](auto d) {
    for (std::int64_t row = first; row < last; ++row) {
      const auto ys = w.y.windows[row % w.y.src];
      const float* plane = dst_grad + row / w.y.src * w.dst_floats();
      for (std::int64_t x = 0; x < w.x.src; ++x) {
        const auto xs = w.x.windows[x];
        float* to = src_grad + (row * w.x.src + x) * w.block;
        prefetch(plane + ((ys.last + 1) * w.x.dst + xs.first) * w.block, w.block);
        with_count(xs.last - xs.first, [&](auto columns) {
          for_each_vector(d, w.block, [&](std::int64_t c, auto access) {
            auto sum = hn::Zero(d);
            for (std::int64_t oy = ys.first; oy < ys.last; ++oy) {
              const std::int64_t at = oy * w.x.dst + xs.first;
              for (int j = 0; j < columns; ++j) {
                const auto grad = access.load(d, plane + (at + j) * w.block + c);
                sum = hn::MulAdd(grad, hn::Set(d, shares[at + j]), sum);
              }
            }
            access.store(sum, d, to + c);
          });
        });
      }
    }
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(max_kernel);
HWY_EXPORT(max_bytes_kernel);
HWY_EXPORT(max_words_kernel);
HWY_EXPORT(max_grad_bytes_kernel);
HWY_EXPORT(max_grad_words_kernel);
HWY_EXPORT(max_grad_tiles_kernel);
HWY_EXPORT(average_kernel);
HWY_EXPORT(average_grad_kernel);

}  // namespace

void block_max(const BlockWindows& w, std::int64_t first, std::int64_t last, const float* src,
               float* dst) {
  HWY_DYNAMIC_DISPATCH(max_kernel)(w, first, last, src, dst);
}
void block_max(const BlockWindows& w, std::int64_t first, std::int64_t last, const float* src,
               float* dst, std::uint8_t* codes) {
  HWY_DYNAMIC_DISPATCH(max_bytes_kernel)(w, first, last, src, dst, codes);
}
void block_max(const BlockWindows& w, std::int64_t first, std::int64_t last, const float* src,
               float* dst, std::uint32_t* codes) {
  HWY_DYNAMIC_DISPATCH(max_words_kernel)(w, first, last, src, dst, codes);
}
void block_max_grad(const BlockWindows& w, std::int64_t first, std::int64_t last,
                    const float* dst_grad, const std::uint8_t* codes, float* src_grad) {
  HWY_DYNAMIC_DISPATCH(max_grad_bytes_kernel)(w, first, last, dst_grad, codes, src_grad);
}
void block_max_grad(const BlockWindows& w, std::int64_t first, std::int64_t last,
                    const float* dst_grad, const std::uint32_t* codes, float* src_grad) {
  HWY_DYNAMIC_DISPATCH(max_grad_words_kernel)(w, first, last, dst_grad, codes, src_grad);
}
void block_max_grad_tiles(const BlockWindows& w, std::int64_t first, std::int64_t last,
                          const float* dst_grad, const std::uint8_t* codes, float* src_grad) {
  HWY_DYNAMIC_DISPATCH(max_grad_tiles_kernel)(w, first, last, dst_grad, codes, src_grad);
}
void block_average(const BlockWindows& w, std::int64_t first, std::int64_t last,
                   const float* shares, const float* src, float* dst) {
  HWY_DYNAMIC_DISPATCH(average_kernel)(w, first, last, shares, src, dst);
}
void block_average_grad(const BlockWindows& w, std::int64_t first, std::int64_t last,
                        const float* shares, const float* dst_grad, float* src_grad) {
  HWY_DYNAMIC_DISPATCH(average_grad_kernel)(w, first, last, shares, dst_grad, src_grad);
}

}  // namespace speedo::cpu
#endif
