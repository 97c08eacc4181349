#include "cpu/elementwise/channels.hpp"

#include <cstddef>

#include "cpu/elementwise/channel_kernels.hpp"
#include "cpu/elementwise/elementwise.hpp"
#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/channels.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// y = f(x, a, b), where a and b are of the column; those of unused columns are 0, and so are null
// ones.
template <class F>
HWY_INLINE void map_rows(ChannelRows all, const float* a, const float* b, const float* x, float* y,
                         const F& f) {
  const std::int64_t rows = all.rows, block = all.block, used = all.used;
  const auto column = [&](auto d, const float* from, std::int64_t c) {
    if (from == nullptr || c >= used) return hn::Zero(d);
    return c + lanes(d) <= used ? Whole().load(d, from + c) : Part(used - c).load(d, from + c);
  };
  if (block == 1) {
    const F32 d;
    const auto a_all = hn::Set(d, a == nullptr ? 0.0F : *a);
    const auto b_all = hn::Set(d, b == nullptr ? 0.0F : *b);
    for_each_vector(d, rows, [&](std::int64_t i, auto access) {
      access.store(f(d, access.load(d, x + i), a_all, b_all), d, y + i);
    });
    return;
  }
  with_row_tag(block, [&](auto d) {
    if (block == lanes(d)) {
      const auto a_row = column(d, a, 0), b_row = column(d, b, 0);
      for (std::int64_t i = 0; i < rows * block; i += block) {
        hn::StoreU(f(d, hn::LoadU(d, x + i), a_row, b_row), d, y + i);
      }
      return;
    }
    for (std::int64_t i = 0; i < rows * block; i += block) {
      for_each_vector(d, block, [&](std::int64_t c, auto access) {
        const auto v = access.load(d, x + i + c);
        access.store(f(d, v, column(d, a, c), column(d, b, c)), d, y + i + c);
      });
    }
  });
}

HWY_FLATTEN void scale_kernel(ChannelRows all, const float* gamma, const float* beta,
                              const float* x, float* y) {
  const std::int64_t block = all.block;
  if (gamma == nullptr && beta != nullptr && all.used == block && block > lanes(F32())) {
    for (std::int64_t i = 0; i < all.rows * block; i += block) {
      map(block, x + i, beta, y + i, [](auto v, auto b) { return hn::Add(v, b); });
    }
  } else if (gamma == nullptr) {
    map_rows(all, gamma, beta, x, y, [](auto, auto v, auto, auto b) { return hn::Add(v, b); });
  } else {
    map_rows(all, gamma, beta, x, y,
             [](auto, auto v, auto a, auto b) { return hn::MulAdd(a, v, b); });
  }
}

HWY_FLATTEN void prelu_kernel(ChannelRows all, const float* slope, const float* x, float* y) {
  map_rows(all, slope, nullptr, x, y, [](auto d, auto v, auto a, auto) {
    return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(a, v));
  });
}

HWY_FLATTEN void prelu_grad_kernel(ChannelRows all, const float* slope, const float* x,
                                   const float* y_grad, float* x_grad) {
  const std::int64_t rows = all.rows, block = all.block, used = all.used;
  // As in map_rows(), with the sign of another array; rows are told apart by their slopes only.
  const auto slopes = [&](auto d, std::int64_t c) {
    if (block == 1) return hn::Set(d, *slope);
    if (c >= used) return hn::Zero(d);
    return c + lanes(d) <= used ? Whole().load(d, slope + c) : Part(used - c).load(d, slope + c);
  };
  const std::int64_t width = block == 1 ? rows : block;
  with_row_tag(width, [&](auto d) {
    for (std::int64_t i = 0; i < rows * block; i += width) {
      for_each_vector(d, width, [&](std::int64_t c, auto access) {
        const auto grad = access.load(d, y_grad + i + c);
        const auto is_positive = hn::Gt(access.load(d, x + i + c), hn::Zero(d));
        const auto scaled = hn::Mul(slopes(d, c), grad);
        access.store(hn::IfThenElse(is_positive, grad, scaled), d, x_grad + i + c);
      });
    }
  });
}

// Adds what f makes of x and y_grad, summed over the rows, to two sums for each used column. Floats
// are added up over this many rows before they go into doubles.
constexpr std::int64_t kFloatRows = 1024;

template <class F>
HWY_INLINE void sum_rows(ChannelRows all, const float* x, const float* y_grad, ChannelSums result,
                         const F& f) {
  const std::int64_t rows = all.rows, stride = all.block, width = all.used;
  with_row_tag(width, [&](auto d) {
    HWY_ALIGN float sums[2][hn::MaxLanes(d)];
    for_each_vector(d, width, [&](std::int64_t c, auto access) {
      for (std::int64_t begin = 0; begin < rows; begin += kFloatRows) {
        const std::int64_t end = std::min(rows, begin + kFloatRows);
        auto first = hn::Zero(d), second = hn::Zero(d), third = hn::Zero(d), fourth = hn::Zero(d);
        std::int64_t r = begin;
        for (; r + 2 <= end; r += 2) {
          const std::int64_t at = r * stride + c;
          f(access.load(d, x + at), access.load(d, y_grad + at), first, second);
          f(access.load(d, x + at + stride), access.load(d, y_grad + at + stride), third, fourth);
        }
        if (r < end) {
          f(access.load(d, x + r * stride + c), access.load(d, y_grad + r * stride + c), first,
            second);
        }
        hn::Store(hn::Add(first, third), d, sums[0]);
        hn::Store(hn::Add(second, fourth), d, sums[1]);
        for (std::int64_t j = 0; j < std::min(lanes(d), width - c); ++j) {
          result.first[c + j] += static_cast<double>(sums[0][j]);
          result.second[c + j] += static_cast<double>(sums[1][j]);
        }
      }
    });
  });
}

// The same with one column whose rows are neighbours.
template <class F>
HWY_INLINE void sum_plane(std::int64_t rows, const float* x, const float* y_grad,
                          ChannelSums result, const F& f) {
  const F32 d;
  const std::int64_t length = kFloatRows * lanes(d);
  for (std::int64_t begin = 0; begin < rows; begin += length) {
    auto first = hn::Zero(d), second = hn::Zero(d);
    for_each_vector(d, std::min(length, rows - begin), [&](std::int64_t i, auto access) {
      f(access.load(d, x + begin + i), access.load(d, y_grad + begin + i), first, second);
    });
    *result.first += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, first)));
    *result.second += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, second)));
  }
}

template <class F>
HWY_INLINE void sum_either(ChannelRows all, const float* x, const float* y_grad, ChannelSums result,
                           const F& f) {
  if (all.block == 1) {
    sum_plane(all.rows, x, y_grad, result, f);
  } else {
    sum_rows(all, x, y_grad, result, f);
  }
}

// Sums of y_grad and of y_grad x.
HWY_FLATTEN void scale_sums_kernel(ChannelRows all, const float* x, const float* y_grad,
                                   ChannelSums result) {
  sum_either(all, x, y_grad, result, [](auto v, auto g, auto& first, auto& second) {
    first = hn::Add(first, g);
    second = hn::MulAdd(g, v, second);
  });
}

// Sums of nothing and of y_grad x where x is not positive.
HWY_FLATTEN void prelu_sums_kernel(ChannelRows all, const float* x, const float* y_grad,
                                   ChannelSums result) {
  sum_either(all, x, y_grad, result, [](auto v, auto g, auto&, auto& second) {
    const auto is_negative = hn::Le(v, hn::Zero(hn::DFromV<decltype(v)>()));
    second = hn::Add(second, hn::IfThenElseZero(is_negative, hn::Mul(g, v)));
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(scale_kernel);
HWY_EXPORT(prelu_kernel);
HWY_EXPORT(prelu_grad_kernel);
HWY_EXPORT(scale_sums_kernel);
HWY_EXPORT(prelu_sums_kernel);

// Columns that one thread sums at a time.
constexpr std::int64_t kColumns = 16;
// Rows whose sums are near enough without doubles.
constexpr std::int64_t kFloatRowsMax = 1024;
// Results that are still in the first-level cache when the activation takes them.
constexpr std::int64_t kChunkFloats = 2048;

using ChannelSumKernel = void (*)(ChannelRows rows, const float* x, const float* y_grad,
                                  ChannelSums result);

// Where a kernel's two sums of each channel are added; either may be null.
struct ChannelTargets {
  float *first, *second;
};

void add_sums(ThreadPool& pool, const ChannelMatrices& m, ChannelSumKernel kernel, const float* x,
              const float* y_grad, ChannelTargets targets) {
  const std::int64_t groups = (m.block + kColumns - 1) / kColumns;
  pool.split(m.blocks * groups, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t k = i / groups, column = i % groups * kColumns;
      const std::int64_t width = std::min(kColumns, m.block - column);
      double first[kColumns] = {}, second[kColumns] = {};
      for (std::int64_t o = 0; o < m.outer; ++o) {
        const std::int64_t at = (o * m.blocks + k) * m.matrix_floats() + column;
        kernel({m.rows, m.block, width}, x + at, y_grad + at, {first, second});
      }
      const std::int64_t channel = k * m.block + column;
      for (std::int64_t j = 0; j < std::min(width, m.channels - channel); ++j) {
        if (targets.first != nullptr) targets.first[channel + j] += static_cast<float>(first[j]);
        if (targets.second != nullptr) targets.second[channel + j] += static_cast<float>(second[j]);
      }
    }
  });
}

const float* from(const float* values, std::int64_t at) {
  return values == nullptr ? nullptr : values + at;
}

}  // namespace

ChannelMatrices::ChannelMatrices(const ChannelView& view)
    : outer(view.shape.batch),
      blocks(view.layout.channels(view.shape.channels) / view.layout.block),
      rows(view.shape.spatial),
      block(view.layout.block),
      channels(view.shape.channels) {
  // Channels lie side by side anyway.
  if (block == 1 && rows == 1 && blocks > 0) block = blocks, blocks = 1;
  if (blocks == 1) rows *= outer, outer = 1;
}

void scale_channels(ThreadPool& pool, const ChannelView& view, const ChannelScale& scale,
                    const float* x, float* y) {
  const ChannelMatrices m(view);
  m.split_rows(pool, [&](std::int64_t k, std::int64_t at, std::int64_t rows) {
    const std::int64_t c = k * m.block;
    // With an activation in pieces that it finds in the cache.
    const std::int64_t step =
        scale.activation ? std::max<std::int64_t>(1, kChunkFloats / m.block) : rows;
    for (std::int64_t row = 0; row < rows; row += step) {
      const std::int64_t count = std::min(step, rows - row), first = at + row * m.block;
      HWY_DYNAMIC_DISPATCH(scale_kernel)
      ({count, m.block, m.used(k)}, from(scale.gamma, c), from(scale.beta, c), x + first,
       y + first);
      if (scale.activation) map(*scale.activation, count * m.block, y + first, y + first);
    }
  });
}

void sum_channels(ThreadPool& pool, const ChannelView& view, const float* x, const float* y_grad,
                  float* gamma_grad, float* beta_grad) {
  const ChannelMatrices m(view);
  // A matrix with a row for each of the batch: few rows, and no layout.
  if (gamma_grad == nullptr && view.shape.spatial == 1 && m.block > 1 && m.block == m.channels) {
    for (std::int64_t row = 0; row < m.rows; row += kFloatRowsMax) {
      sum_rows(pool, std::min(kFloatRowsMax, m.rows - row), m.block, y_grad + row * m.block,
               beta_grad);
    }
    return;
  }
  // Without x the sum of y_grad x is not asked for; the kernel may read anything.
  add_sums(pool, m, HWY_DYNAMIC_DISPATCH(scale_sums_kernel), x == nullptr ? y_grad : x, y_grad,
           {beta_grad, gamma_grad});
}

void prelu_forward(ThreadPool& pool, const ChannelView& view, const float* slope, const float* x,
                   float* y) {
  const ChannelMatrices m(view);
  m.split_rows(pool, [&](std::int64_t k, std::int64_t at, std::int64_t rows) {
    HWY_DYNAMIC_DISPATCH(prelu_kernel)
    ({rows, m.block, m.used(k)}, slope + k * m.block, x + at, y + at);
  });
}

void prelu_backward(ThreadPool& pool, const ChannelView& view, const PreluGradient& g) {
  const ChannelMatrices m(view);
  // First, because x_grad may be y_grad.
  if (g.slope_grad != nullptr) {
    add_sums(pool, m, HWY_DYNAMIC_DISPATCH(prelu_sums_kernel), g.x, g.y_grad,
             {nullptr, g.slope_grad});
  }
  if (g.x_grad == nullptr) return;
  m.split_rows(pool, [&](std::int64_t k, std::int64_t at, std::int64_t rows) {
    HWY_DYNAMIC_DISPATCH(prelu_grad_kernel)
    ({rows, m.block, m.used(k)}, g.slope + k * m.block, g.x + at, g.y_grad + at, g.x_grad + at);
  });
}

}  // namespace speedo::cpu
#endif
