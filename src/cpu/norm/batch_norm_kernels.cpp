#include "cpu/norm/batch_norm_kernels.hpp"

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/norm/batch_norm_kernels.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// Call body(address, access, 0 or 1) for vectors that follow one another, or that lie a row apart.
// The last argument tells apart two sums that need not wait for each other.
template <class D, class Body>
HWY_INLINE void for_each_neighbour(D d, std::int64_t n, const float* x, const Body& body) {
  std::int64_t i = 0;
  for (; i + 2 * lanes(d) <= n; i += 2 * lanes(d)) {
    body(x + i, Whole(), 0);
    body(x + i + lanes(d), Whole(), 1);
  }
  if (i + lanes(d) <= n) body(x + i, Whole(), 0), i += lanes(d);
  if (i < n) body(x + i, Part(n - i), 1);
}
template <class Access, class Body>
HWY_INLINE void for_each_row(std::int64_t rows, std::int64_t block, const float* x, Access access,
                             const Body& body) {
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    body(x + r * block, access, 0);
    body(x + (r + 1) * block, access, 1);
  }
  if (r < rows) body(x + r * block, access, 0);
}

// The moments of one chunk: its mean, roughly, and what differs from that, added up with and
// without squaring, which puts both right.
template <class D>
struct ChunkMoments {
  hn::Vec<D> shift, differences, squares;
};

// visit(body) calls body for the vectors of the chunk, total(v) adds up the lanes of one channel.
template <class D, class Visit, class Total>
HWY_INLINE ChunkMoments<D> chunk_moments(D d, float count, const Visit& visit, const Total& total) {
  auto even = hn::Zero(d), odd = hn::Zero(d);
  visit([&](const float* at, auto access, int into) {
    auto& sum = into == 0 ? even : odd;
    sum = hn::Add(sum, access.load(d, at));
  });
  const auto shift = hn::Mul(total(hn::Add(even, odd)), hn::Set(d, 1.0F / count));
  auto squares_even = hn::Zero(d), squares_odd = hn::Zero(d);
  even = odd = hn::Zero(d);
  visit([&](const float* at, auto access, int into) {
    auto& sum = into == 0 ? even : odd;
    auto& squares = into == 0 ? squares_even : squares_odd;
    const auto difference = hn::Sub(access.load_or(d, at, shift), shift);
    sum = hn::Add(sum, difference);
    squares = hn::MulAdd(difference, difference, squares);
  });
  return {shift, total(hn::Add(even, odd)), total(hn::Add(squares_even, squares_odd))};
}

// Those of one channel.
struct ChannelMoments {
  float shift, difference, square;
};

// Merges a chunk of `more` rows into the moments of n rows.
HWY_INLINE void merge_chunk(double n, double more, ChannelMoments chunk, double& mean,
                            double& squares) {
  const double rest = static_cast<double>(chunk.difference);
  const double chunk_mean = static_cast<double>(chunk.shift) + rest / more;
  const double chunk_squares = static_cast<double>(chunk.square) - rest * rest / more;
  const double apart = chunk_mean - mean;
  mean += apart * more / (n + more);
  squares += chunk_squares + apart * apart * n * more / (n + more);
}

HWY_FLATTEN void moments_kernel(const NormRows& all, const float* x, double* mean,
                                double* squares) {
  const NormRows r = all;
  std::fill_n(mean, r.block, 0.0);
  std::fill_n(squares, r.block, 0.0);
  for (std::int64_t begin = 0; begin < r.rows; begin += r.chunk) {
    const std::int64_t rows = std::min(r.chunk, r.rows - begin);
    const auto n = static_cast<double>(begin), more = static_cast<double>(rows);
    const float* chunk = x + begin * r.block;
    if (r.block == 1) {
      const F32 d;
      const auto moments = chunk_moments(
          d, static_cast<float>(rows),
          [&](const auto& body) { for_each_neighbour(d, rows, chunk, body); },
          [&](auto v) { return hn::SumOfLanes(d, v); });
      merge_chunk(n, more,
                  {hn::GetLane(moments.shift), hn::GetLane(moments.differences),
                   hn::GetLane(moments.squares)},
                  *mean, *squares);
      continue;
    }
    with_row_tag(r.block, [&](auto d) {
      HWY_ALIGN float shift[hn::MaxLanes(d)], difference[hn::MaxLanes(d)], square[hn::MaxLanes(d)];
      for_each_vector(d, r.block, [&](std::int64_t c, auto access) {
        const auto moments = chunk_moments(
            d, static_cast<float>(rows),
            [&](const auto& body) { for_each_row(rows, r.block, chunk + c, access, body); },
            [](auto v) { return v; });
        hn::Store(moments.shift, d, shift);
        hn::Store(moments.differences, d, difference);
        hn::Store(moments.squares, d, square);
        for (std::int64_t j = 0; j < std::min(lanes(d), r.block - c); ++j) {
          merge_chunk(n, more, {shift[j], difference[j], square[j]}, mean[c + j], squares[c + j]);
        }
      });
    });
  }
}

HWY_FLATTEN void merge_kernel(std::int64_t block, double n, const NormMoments& moments,
                              double* mean, double* squares) {
  const NormMoments more = moments;
  const double share = more.rows / (n + more.rows);
  for (std::int64_t c = 0; c < block; ++c) {
    const double apart = more.mean[c] - mean[c];
    mean[c] += apart * share;
    squares[c] += more.squares[c] + apart * apart * n * share;
  }
}

// Calls body(vector type, element, access, channel's coefficients) for all vectors, where a
// coefficient is read by k(array).
template <class Body>
HWY_INLINE void for_each_with_coefficients(const NormRows& r, const Body& body) {
  if (r.block == 1) {
    const F32 d;
    for_each_vector(d, r.rows, [&](std::int64_t i, auto access) {
      body(d, i, access, [&](const float* k) { return hn::Set(d, *k); });
    });
    return;
  }
  with_row_tag(r.block, [&](auto d) {
    for (std::int64_t i = 0; i < r.rows * r.block; i += r.block) {
      for_each_vector(d, r.block, [&](std::int64_t c, auto access) {
        body(d, i + c, access, [&](const float* k) { return hn::LoadU(d, k + c); });
      });
    }
  });
}

// The number that the ReLU takes.
template <class V>
HWY_INLINE V normalized(V difference, V factor, V offset) {
  return hn::MulAdd(difference, factor, offset);
}

HWY_FLATTEN void norm_forward_kernel(const NormRows& rows, const ChannelAffine& k, const float* x,
                                     float* y) {
  const NormRows r = rows;
  for_each_with_coefficients(r, [&](auto d, std::int64_t i, auto access, auto coefficient) {
    const auto difference = hn::Sub(access.load(d, x + i), coefficient(k.mean));
    auto v = normalized(difference, coefficient(k.factor), coefficient(k.offset));
    if (r.has_relu) {
      v = hn::IfThenElse(hn::Gt(v, hn::Zero(d)), v, hn::Mul(v, hn::Set(d, r.slope)));
    }
    access.store(v, d, y + i);
  });
}

// What is known of the elements from i on: x less its mean, and their channels' coefficients.
template <class V>
struct NormElements {
  std::int64_t i;
  V difference, factor, offset;
};

// The gradient before the ReLU.
template <class D, class Access, class V = hn::Vec<D>>
HWY_INLINE V before_relu(D d, Access access, const NormRows& r, const float* y,
                         const NormElements<V>& at, V y_grad) {
  if (!r.has_relu) return y_grad;
  const V result =
      y == nullptr ? normalized(at.difference, at.factor, at.offset) : access.load(d, y + at.i);
  const auto is_positive = hn::Gt(result, hn::Zero(d));
  return hn::IfThenElse(is_positive, y_grad, hn::Mul(y_grad, hn::Set(d, r.slope)));
}

template <class D>
struct GradientSums {
  hn::Vec<D> sum, product;
};

// ChannelAffine of the channels of a vector.
template <class D>
struct VectorCoefficients {
  hn::Vec<D> mean, factor, offset;
};

template <class D, class Visit>
HWY_INLINE GradientSums<D> chunk_gradient_sums(D d, const NormRows& r,
                                               const VectorCoefficients<D>& k, NormArrays from,
                                               const Visit& visit) {
  auto even = hn::Zero(d), odd = hn::Zero(d);
  auto products_even = hn::Zero(d), products_odd = hn::Zero(d);
  visit([&](const float* at, auto access, int into) {
    auto& sum = into == 0 ? even : odd;
    auto& products = into == 0 ? products_even : products_odd;
    const auto difference = hn::Sub(access.load(d, at), k.mean);
    const std::int64_t i = at - from.x;
    const NormElements<hn::Vec<D>> elements{i, difference, k.factor, k.offset};
    const auto g = before_relu(d, access, r, from.y, elements, access.load(d, from.y_grad + i));
    sum = hn::Add(sum, g);
    products = hn::MulAdd(g, difference, products);
  });
  return {hn::Add(even, odd), hn::Add(products_even, products_odd)};
}

HWY_FLATTEN void gradient_sums_kernel(const NormRows& rows, const ChannelAffine& k,
                                      const NormArrays& arrays, double* sums, double* products) {
  const NormRows r = rows;
  const NormArrays from = arrays;
  std::fill_n(sums, r.block, 0.0);
  std::fill_n(products, r.block, 0.0);
  for (std::int64_t begin = 0; begin < r.rows; begin += r.chunk) {
    const std::int64_t n = std::min(r.chunk, r.rows - begin);
    const float* chunk = from.x + begin * r.block;
    if (r.block == 1) {
      const F32 d;
      const VectorCoefficients<F32> all{hn::Set(d, *k.mean), hn::Set(d, *k.factor),
                                        hn::Set(d, *k.offset)};
      const auto found = chunk_gradient_sums(
          d, r, all, from, [&](const auto& body) { for_each_neighbour(d, n, chunk, body); });
      *sums += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, found.sum)));
      *products += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, found.product)));
      continue;
    }
    with_row_tag(r.block, [&](auto d) {
      HWY_ALIGN float sum[hn::MaxLanes(d)], product[hn::MaxLanes(d)];
      for_each_vector(d, r.block, [&](std::int64_t c, auto access) {
        const VectorCoefficients<decltype(d)> each{
            hn::LoadU(d, k.mean + c), hn::LoadU(d, k.factor + c), hn::LoadU(d, k.offset + c)};
        const auto found = chunk_gradient_sums(d, r, each, from, [&](const auto& body) {
          for_each_row(n, r.block, chunk + c, access, body);
        });
        hn::Store(found.sum, d, sum);
        hn::Store(found.product, d, product);
        for (std::int64_t j = 0; j < std::min(lanes(d), r.block - c); ++j) {
          sums[c + j] += static_cast<double>(sum[j]);
          products[c + j] += static_cast<double>(product[j]);
        }
      });
    });
  }
}

HWY_FLATTEN void norm_backward_kernel(const NormRows& rows, const ChannelAffine& k,
                                      const NormGradient& gradient, const NormArrays& arrays,
                                      float* x_grad) {
  const NormRows r = rows;
  const NormArrays from = arrays;
  for_each_with_coefficients(r, [&](auto d, std::int64_t i, auto access, auto coefficient) {
    const auto factor = coefficient(k.factor);
    const auto difference = hn::Sub(access.load(d, from.x + i), coefficient(k.mean));
    const NormElements<hn::Vec<decltype(d)>> elements{i, difference, factor, coefficient(k.offset)};
    const auto g = before_relu(d, access, r, from.y, elements, access.load(d, from.y_grad + i));
    const auto rest =
        hn::MulAdd(difference, coefficient(gradient.slope), coefficient(gradient.shift));
    access.store(hn::MulAdd(g, factor, rest), d, x_grad + i);
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(moments_kernel);
HWY_EXPORT(merge_kernel);
HWY_EXPORT(norm_forward_kernel);
HWY_EXPORT(gradient_sums_kernel);
HWY_EXPORT(norm_backward_kernel);

}  // namespace

void norm_moments(const NormRows& r, const float* x, double* mean, double* squares) {
  HWY_DYNAMIC_DISPATCH(moments_kernel)(r, x, mean, squares);
}
void norm_merge(std::int64_t block, double n, const NormMoments& more, double* mean,
                double* squares) {
  HWY_DYNAMIC_DISPATCH(merge_kernel)(block, n, more, mean, squares);
}
void norm_forward(const NormRows& r, const ChannelAffine& k, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(norm_forward_kernel)(r, k, x, y);
}
void norm_gradient_sums(const NormRows& r, const ChannelAffine& k, const NormArrays& from,
                        double* sums, double* products) {
  HWY_DYNAMIC_DISPATCH(gradient_sums_kernel)(r, k, from, sums, products);
}
void norm_backward(const NormRows& r, const ChannelAffine& k, const NormGradient& gradient,
                   const NormArrays& from, float* x_grad) {
  HWY_DYNAMIC_DISPATCH(norm_backward_kernel)(r, k, gradient, from, x_grad);
}

}  // namespace speedo::cpu
#endif
