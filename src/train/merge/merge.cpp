#include <speedo/train/merge.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <speedo/base/assert.hpp>

#include "base/simd.hpp"

// Compiled with -ffp-contract=off: a fused multiply-add would round otherwise on machines that have
// it.

namespace speedo {
namespace merge_kernels {

// An exponent of all ones: NaN or infinite. Integer arithmetic, so that the loops below vectorise.
inline std::uint32_t not_finite(float value) {
  constexpr std::uint32_t kExponent = 0x7f800000U;
  return (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
}

// The pragma: arrays are equal or apart, so no iteration reads what another one writes.
SPEEDO_MULTIVERSION std::uint32_t add(std::size_t n, const float* w, const float* c, float scale,
                                      float* y) {
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float value = w[i] + scale * c[i];
    y[i] = value;
    bad |= not_finite(value);
  }
  return bad;
}

SPEEDO_MULTIVERSION std::uint32_t add_two(std::size_t n, const float* w, const ScaledPart& a,
                                          const ScaledPart& b, float scale, float* y) {
  // Pointers: a span's checked index would keep the loop from being vectorised.
  const float* const first = a.values.data();
  const float* const second = b.values.data();
  const float first_scale = a.scale, second_scale = b.scale;
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = first_scale * first[i] + second_scale * second[i];
    const float value = w[i] + scale * sum;
    y[i] = value;
    bad |= not_finite(value);
  }
  return bad;
}

SPEEDO_MULTIVERSION std::uint32_t scaled_two(std::size_t n, const ScaledPart& a,
                                             const ScaledPart& b, float scale, float* y) {
  const float* const first = a.values.data();
  const float* const second = b.values.data();
  const float first_scale = a.scale, second_scale = b.scale;
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float value = scale * (first_scale * first[i] + second_scale * second[i]);
    y[i] = value;
    bad |= not_finite(value);
  }
  return bad;
}

SPEEDO_MULTIVERSION std::uint32_t add_large(std::size_t n, const float* w, const float* c,
                                            float scale, float skip, float* y) {
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float value = std::fabs(c[i]) < skip ? w[i] : w[i] + scale * c[i];
    y[i] = value;
    bad |= not_finite(value);
  }
  return bad;
}

SPEEDO_MULTIVERSION std::uint32_t accumulate(std::size_t n, const float* c, float* y) {
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float value = y[i] + c[i];
    y[i] = value;
    bad |= not_finite(value);
  }
  return bad;
}

SPEEDO_MULTIVERSION std::uint32_t scaled(std::size_t n, float factor, const float* c, float* y) {
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float value = factor * c[i];
    y[i] = value;
    bad |= not_finite(value);
  }
  return bad;
}

SPEEDO_MULTIVERSION void elastic(std::size_t n, const float* centre, float rate, float* x,
                                 float* e) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float difference = rate * (x[i] - centre[i]);
    x[i] -= difference;
    e[i] = difference;
  }
}

SPEEDO_MULTIVERSION void elastic_only(std::size_t n, const float* centre, float rate,
                                      const float* x, float* e) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) e[i] = rate * (x[i] - centre[i]);
}

SPEEDO_MULTIVERSION std::uint32_t any_not_finite(std::size_t n, const float* x) {
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) bad |= not_finite(x[i]);
  return bad;
}

}  // namespace merge_kernels

bool merge_add(std::span<const float> weights, std::span<const float> contribution, float scale,
               std::span<float> target) {
  SPEEDO_ASSERT(weights.size() == target.size());
  SPEEDO_ASSERT(contribution.size() == target.size());
  return merge_kernels::add(target.size(), weights.data(), contribution.data(), scale,
                            target.data()) == 0;
}

bool merge_add_two(std::span<const float> weights, const ScaledPart& a, const ScaledPart& b,
                   float scale, std::span<float> target) {
  SPEEDO_ASSERT(weights.size() == target.size());
  SPEEDO_ASSERT(a.values.size() == target.size() && b.values.size() == target.size());
  return merge_kernels::add_two(target.size(), weights.data(), a, b, scale, target.data()) == 0;
}

bool merge_scaled_two(const ScaledPart& a, const ScaledPart& b, float scale,
                      std::span<float> target) {
  SPEEDO_ASSERT(a.values.size() == target.size() && b.values.size() == target.size());
  return merge_kernels::scaled_two(target.size(), a, b, scale, target.data()) == 0;
}

bool merge_add_large(std::span<const float> weights, std::span<const float> contribution,
                     float scale, float skip, std::span<float> target) {
  SPEEDO_ASSERT(weights.size() == target.size());
  SPEEDO_ASSERT(contribution.size() == target.size());
  return merge_kernels::add_large(target.size(), weights.data(), contribution.data(), scale, skip,
                                  target.data()) == 0;
}

bool merge_accumulate(std::span<const float> contribution, std::span<float> sum) {
  SPEEDO_ASSERT(contribution.size() == sum.size());
  return merge_kernels::accumulate(sum.size(), contribution.data(), sum.data()) == 0;
}

bool merge_scaled(float scale, std::span<const float> contribution, std::span<float> target) {
  SPEEDO_ASSERT(contribution.size() == target.size());
  return merge_kernels::scaled(target.size(), scale, contribution.data(), target.data()) == 0;
}

void elastic_difference(std::span<const float> centre, float rate, std::span<float> x,
                        std::span<float> elastic) {
  SPEEDO_ASSERT(centre.size() == x.size());
  SPEEDO_ASSERT(elastic.size() == x.size());
  merge_kernels::elastic(x.size(), centre.data(), rate, x.data(), elastic.data());
}

void elastic_part(std::span<const float> centre, float rate, std::span<const float> x,
                  std::span<float> elastic) {
  SPEEDO_ASSERT(centre.size() == x.size());
  SPEEDO_ASSERT(elastic.size() == x.size());
  merge_kernels::elastic_only(x.size(), centre.data(), rate, x.data(), elastic.data());
}

bool all_finite(std::span<const float> values) {
  return merge_kernels::any_not_finite(values.size(), values.data()) == 0;
}

}  // namespace speedo
