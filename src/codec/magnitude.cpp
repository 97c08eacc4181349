#include "codec/magnitude.hpp"

#include <speedo/base/assert.hpp>

#include "base/simd.hpp"
#include "codec/bits.hpp"

namespace speedo {
namespace magnitude_kernels {

SPEEDO_MULTIVERSION std::int32_t largest(std::size_t n, const float* x) {
  std::int32_t most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t bits = magnitude_bits(x[i]);
    most = bits > most ? bits : most;
  }
  return most;
}

SPEEDO_MULTIVERSION std::int32_t largest_sum(std::size_t n, const float* x, const float* y) {
  std::int32_t most = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t bits = magnitude_bits(x[i] + y[i]);
    most = bits > most ? bits : most;
  }
  return most;
}

}  // namespace magnitude_kernels

std::int32_t largest_magnitude(std::span<const float> values) {
  return magnitude_kernels::largest(values.size(), values.data());
}

std::int32_t largest_sum_magnitude(std::span<const float> values, std::span<const float> others) {
  SPEEDO_ASSERT(values.size() == others.size());
  return magnitude_kernels::largest_sum(values.size(), values.data(), others.data());
}

}  // namespace speedo
