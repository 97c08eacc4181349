// Helpers of vector kernels. Compiled once per instruction set, hence no #pragma once; see
// simd.hpp.
#if defined(SPEEDO_CPU_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SPEEDO_CPU_SIMD_INL
#undef SPEEDO_CPU_SIMD_INL
#else
#define SPEEDO_CPU_SIMD_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
// At most 8 floats: what a block of 8 channels fills.
using F32Max8 = hn::CappedTag<float, 8>;

template <class D>
HWY_INLINE std::int64_t lanes(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}

// How a kernel reads and writes a vector: all of it, or the first lanes of one at the end of an
// array, where the others read as zero and are not written.
struct Whole {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const float* from) const {
    return hn::LoadU(d, from);
  }
  // `other` in the lanes that are not read.
  template <class D>
  HWY_INLINE hn::Vec<D> load_or(D d, const float* from, hn::Vec<D> /*other*/) const {
    return hn::LoadU(d, from);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> value, D d, float* to) const {
    hn::StoreU(value, d, to);
  }
};

class Part {
 public:
  explicit Part(std::int64_t count) : count_(static_cast<std::size_t>(count)) {}

// Masked memory operations of 32-bit lanes do not touch what they leave out from AVX on.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || !HWY_MEM_OPS_MIGHT_FAULT
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const float* from) const {
    return hn::MaskedLoad(hn::FirstN(d, count_), d, from);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> value, D d, float* to) const {
    hn::BlendedStore(value, hn::FirstN(d, count_), d, to);
  }
#else
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const float* from) const {
    HWY_ALIGN float buffer[hn::MaxLanes(D())] = {};
    for (std::size_t i = 0; i < count_; ++i) buffer[i] = from[i];
    return hn::Load(d, buffer);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> value, D d, float* to) const {
    HWY_ALIGN float buffer[hn::MaxLanes(D())];
    hn::Store(value, d, buffer);
    for (std::size_t i = 0; i < count_; ++i) to[i] = buffer[i];
  }
#endif

  template <class D>
  HWY_INLINE hn::Vec<D> load_or(D d, const float* from, hn::Vec<D> other) const {
    return hn::IfThenElse(hn::FirstN(d, count_), load(d, from), other);
  }

 private:
  std::size_t count_;
};

// Calls body(first element, access) for the vectors of an array of n elements.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, std::int64_t n, const Body& body) {
  const std::int64_t step = lanes(d);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) body(i, Whole());
  if (i < n) body(i, Part(n - i));
}

// y[i] = f(x[i]) and y[i] = f(a[i], b[i]), on vectors.
template <class F>
HWY_INLINE void map(std::int64_t n, const float* x, float* y, const F& f) {
  const F32 d;
  for_each_vector(
      d, n, [&](std::int64_t i, auto access) { access.store(f(access.load(d, x + i)), d, y + i); });
}
template <class F>
HWY_INLINE void map(std::int64_t n, const float* a, const float* b, float* y, const F& f) {
  const F32 d;
  for_each_vector(d, n, [&](std::int64_t i, auto access) {
    access.store(f(access.load(d, a + i), access.load(d, b + i)), d, y + i);
  });
}

// The vector type that a row of `row` floats is best cut into.
template <class Body>
HWY_INLINE void with_row_tag(std::int64_t row, const Body& body) {
  if (row % lanes(F32()) != 0 && row % 8 == 0) {
    body(F32Max8());
  } else {
    body(F32());
  }
}

}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
