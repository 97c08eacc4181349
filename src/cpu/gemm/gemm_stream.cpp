#include "cpu/gemm/gemm_stream.hpp"

#include <speedo/base/assert.hpp>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gemm/gemm_stream.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

using V = hn::Vec<F32>;

// AVX-512 has 32 vector registers, the others here 16.
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;

// Rows of A that one step works on, at most.
constexpr int kRows = 6;

struct Product {
  Backend::GemmShape shape;
  float alpha;
  GemmMatrix a, b;
  float beta;
  GemmTarget c;
};

// beta x before + alpha x sum; what lay there before must not matter if beta is 0.
template <class Access, class D>
HWY_INLINE void update(Access access, D d, hn::Vec<D> sum, float alpha, float beta, float* c) {
  auto value = hn::Mul(hn::Set(d, alpha), sum);
  if (beta != 0.0F) value = hn::MulAdd(hn::Set(d, beta), access.load(d, c), value);
  access.store(value, d, c);
}

// Calls body(first row, integral_constant of rows) for all rows, `most` at a time or evenly fewer.
template <int most, class Body>
HWY_INLINE void for_row_tiles(std::int64_t count, const Body& body) {
  static_assert(1 <= most && most <= 6);
  const std::int64_t tiles = (count + most - 1) / most;
  const auto tile = [&](std::int64_t i, std::int64_t rows) HWY_ATTR {
    const auto is = [&](auto size) HWY_ATTR {
      if constexpr (size <= most) {
        if (rows == size) body(i, size);
      }
    };
    is(std::integral_constant<int, 1>());
    is(std::integral_constant<int, 2>());
    is(std::integral_constant<int, 3>());
    is(std::integral_constant<int, 4>());
    is(std::integral_constant<int, 5>());
    is(std::integral_constant<int, 6>());
  };
  std::int64_t i = 0;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t rows = (count - i + tiles - t - 1) / (tiles - t);
    tile(i, rows);
    i += rows;
  }
}

// ---- Both matrices lie along k: dot products.

// Rows of B (columns of C) that one step works on, and how many terms. These pieces of B stay in
// the first cache while the rows of A pass, which come from the second.
constexpr std::int64_t kDots = 4, kDotTerms = 1024;
constexpr int kDotRows = kManyRegisters ? kRows : kRows / 2;

// c[j] = beta c[j] + alpha (sum of the lanes of v[j]).
HWY_INLINE void update_one(V v, float alpha, float beta, float* c) {
  const float sum = alpha * hn::GetLane(hn::SumOfLanes(F32(), v));
  *c = beta == 0.0F ? sum : beta * *c + sum;
}
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void update_dots(const V (&v)[kDots], float alpha, float beta, float* c) {
  for (int j = 0; j < kDots; ++j) update_one(v[j], alpha, beta, c + j);
}
#else
HWY_INLINE void update_dots(const V (&v)[kDots], float alpha, float beta, float* c) {
  const F32 tag;
  const auto add_pairs = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(hn::RepartitionToWide<F32>(),
                       hn::Add(hn::InterleaveLower(tag, a, b), hn::InterleaveUpper(tag, a, b)));
  };
  const hn::RepartitionToWide<F32> wide;
  const auto low = add_pairs(v[0], v[1]), high = add_pairs(v[2], v[3]);
  // Each 128 bits hold a part of the four sums.
  const V parts = hn::Add(hn::BitCast(tag, hn::InterleaveLower(wide, low, high)),
                          hn::BitCast(tag, hn::InterleaveUpper(wide, low, high)));
  const hn::FixedTag<float, kDots> four;
  HWY_ALIGN float stored[hn::MaxLanes(tag)];
  hn::Store(parts, tag, stored);
  auto sum = hn::Load(four, stored);
  for (std::int64_t i = kDots; i < lanes(tag); i += kDots) {
    sum = hn::Add(sum, hn::Load(four, stored + i));
  }
  update(Whole(), four, sum, alpha, beta, c);
}
#endif

// Brings `count` of the rows that come next from memory, a line at each step: pieces of rows are
// too short for the processor to foresee them.
struct Ahead {
  const float* rows;
  std::int64_t stride;
};

template <int rows, int dots, int ahead_rows>
HWY_INLINE void dot_tile(std::int64_t terms, GemmMatrix a, GemmMatrix b, Ahead ahead,
                         V (&sums)[rows][dots]) {
  const F32 d;
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  for_each_vector(d, terms, [&](std::int64_t p, auto access) HWY_ATTR {
    V as[rows];
    for (int i = 0; i < rows; ++i) as[i] = access.load(d, a.data + i * a.stride + p);
    for (int j = 0; j < ahead_rows; ++j) {
      __builtin_prefetch(ahead.rows + j * ahead.stride + p, 0, 2);
    }
    // The sums and one row's values take all registers that there are without AVX-512.
    for (int j = 0; j < dots; ++j) {
      const V bs = access.load(d, b.data + j * b.stride + p);
      for (int i = 0; i < rows; ++i) sums[i][j] = hn::MulAdd(as[i], bs, sums[i][j]);
    }
  });
}

// Columns [j, j + kDots) of C by the terms [first, first + terms).
template <int ahead_rows>
HWY_INLINE void dot_columns(const Product& x, std::int64_t j, std::int64_t first,
                            std::int64_t terms) {
  const float beta = first == 0 ? x.beta : 1.0F;
  const GemmMatrix b{x.b.data + j * x.b.stride + first, x.b.stride};
  Ahead ahead{b.data + kDots * b.stride, b.stride};
  for_row_tiles<kDotRows>(x.shape.m, [&](std::int64_t i, auto rows) HWY_ATTR {
    V sums[rows][kDots];
    dot_tile<rows, kDots, ahead_rows>(terms, {x.a.data + i * x.a.stride + first, x.a.stride}, b,
                                      ahead, sums);
    ahead.rows += ahead_rows * ahead.stride;
    for (int r = 0; r < rows; ++r) {
      update_dots(sums[r], x.alpha, beta, x.c.data + (i + r) * x.c.stride + j);
    }
  });
}

// Column j of C.
HWY_INLINE void dot_column(const Product& x, std::int64_t j, std::int64_t first,
                           std::int64_t terms) {
  const float beta = first == 0 ? x.beta : 1.0F;
  for_row_tiles<kDotRows>(x.shape.m, [&](std::int64_t i, auto rows) HWY_ATTR {
    V sums[rows][1];
    dot_tile<rows, 1, 0>(terms, {x.a.data + i * x.a.stride + first, x.a.stride},
                         {x.b.data + j * x.b.stride + first, x.b.stride}, {}, sums);
    for (int r = 0; r < rows; ++r) {
      update_one(sums[r][0], x.alpha, beta, x.c.data + (i + r) * x.c.stride + j);
    }
  });
}

void multiply_by_dots(const Product& x) {
  const std::int64_t tiles = (x.shape.m + kDotRows - 1) / kDotRows;
  for (std::int64_t first = 0; first < x.shape.k; first += kDotTerms) {
    const std::int64_t terms = std::min(kDotTerms, x.shape.k - first);
    std::int64_t j = 0;
    for (; j + kDots <= x.shape.n; j += kDots) {
      if (tiles == 1) {
        dot_columns<4>(x, j, first, terms);
      } else if (tiles <= 3) {
        dot_columns<2>(x, j, first, terms);
      } else {
        dot_columns<1>(x, j, first, terms);
      }
    }
    for (; j < x.shape.n; ++j) dot_column(x, j, first, terms);
  }
}

// ---- B lies along the rows of C: sums of its rows.

// Vectors of a row of C that one step works on: with kRows rows as many sums as fit in registers.
constexpr int kVectors = kManyRegisters ? 4 : 2;
// Pieces of B of so many rows and elements stay in the second cache while the rows of A pass.
constexpr std::int64_t kSumTerms = 128, kPanelFloats = 65536;

// A's element (row, term) is a[row * row_step + term * term_step].
struct Factors {
  const float* data;
  std::int64_t row_step, term_step;
};

// Of the new sums and of what lay there before.
struct Weighting {
  float alpha, beta;
};

template <int rows, int vectors, class Access>
HWY_INLINE void sum_tile(Access access, std::int64_t terms, Factors a, GemmMatrix b, Weighting w,
                         GemmTarget c) {
  const F32 d;
  V sums[rows][vectors];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  for (std::int64_t p = 0; p < terms; ++p) {
    V bs[vectors];
    for (int j = 0; j < vectors; ++j) bs[j] = access.load(d, b.data + p * b.stride + j * lanes(d));
    for (int i = 0; i < rows; ++i) {
      const V as = hn::Set(d, a.data[i * a.row_step + p * a.term_step]);
      for (int j = 0; j < vectors; ++j) sums[i][j] = hn::MulAdd(as, bs[j], sums[i][j]);
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < vectors; ++j) {
      update(access, d, sums[i][j], w.alpha, w.beta, c.data + i * c.stride + j * lanes(d));
    }
  }
}

// Columns [first, last) of C by the terms [term, term + terms).
HWY_INLINE void sum_panel(const Product& x, Factors a, std::int64_t first, std::int64_t last,
                          std::int64_t term, std::int64_t terms) {
  const std::int64_t width = lanes(F32());
  const float beta = term == 0 ? x.beta : 1.0F;
  for_row_tiles<kRows>(x.shape.m, [&](std::int64_t i, auto rows) HWY_ATTR {
    const Factors from{a.data + i * a.row_step + term * a.term_step, a.row_step, a.term_step};
    const auto columns = [&](std::int64_t j, auto vectors, auto access) HWY_ATTR {
      sum_tile<rows, vectors>(access, terms, from, {x.b.data + term * x.b.stride + j, x.b.stride},
                              {x.alpha, beta}, {x.c.data + i * x.c.stride + j, x.c.stride});
    };
    std::int64_t j = first;
    for (; j + kVectors * width <= last; j += kVectors * width) {
      columns(j, std::integral_constant<int, kVectors>(), Whole());
    }
    for (; j + width <= last; j += width) columns(j, std::integral_constant<int, 1>(), Whole());
    if (j < last) columns(j, std::integral_constant<int, 1>(), Part(last - j));
  });
}

void multiply_by_sums(const Product& x, bool a_transposed) {
  const Factors a{x.a.data, a_transposed ? 1 : x.a.stride, a_transposed ? x.a.stride : 1};
  const std::int64_t width = kPanelFloats / std::min(kSumTerms, x.shape.k);
  for (std::int64_t j = 0; j < x.shape.n; j += width) {
    for (std::int64_t term = 0; term < x.shape.k; term += kSumTerms) {
      sum_panel(x, a, j, std::min(j + width, x.shape.n), term,
                std::min(kSumTerms, x.shape.k - term));
    }
  }
}

void stream_kernel(const Backend::Gemm& form, GemmMatrix a, GemmMatrix b, GemmTarget c) {
  const Product product{form.shape, form.alpha, a, b, form.beta, c};
  if (form.b_op == Op::kTranspose) {
    multiply_by_dots(product);
  } else {
    multiply_by_sums(product, form.a_op == Op::kTranspose);
  }
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(stream_kernel);

}  // namespace

void stream_gemm(const Backend::Gemm& product, GemmMatrix a, GemmMatrix b, GemmTarget c) {
  SPEEDO_ASSERT(product.a_op == Op::kNone || product.b_op == Op::kNone);
  HWY_DYNAMIC_DISPATCH(stream_kernel)(product, a, b, c);
}

}  // namespace speedo::cpu
#endif
