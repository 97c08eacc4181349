#pragma once

#include <cstddef>
#include <cstdint>

#include <speedo/base/assert.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/array.hpp"

namespace speedo::gpu {

// Loops over arrays whose bodies are written once: for single elements, and for four neighbours,
// which a device loads and stores at once.

struct alignas(16) Floats4 {
  float x, y, z, w;
};
struct alignas(8) Halves4 {
  std::uint16_t x, y, z, w;
};

// f of an element, or of each of four.
template <class F, class... Rest>
SPEEDO_HOST_DEVICE float each(const F& f, float first, Rest... rest) {
  return f(first, rest...);
}
template <class F, class... Rest>
SPEEDO_HOST_DEVICE Floats4 each(const F& f, Floats4 first, Rest... rest) {
  return {f(first.x, rest.x...), f(first.y, rest.y...), f(first.z, rest.z...),
          f(first.w, rest.w...)};
}

// The places of one element, and of four, in arrays of a type; float pointers are to floats.
template <ElementType kType = ElementType::kFloat32>
struct OneAt {
  std::int64_t i;

  SPEEDO_HOST_DEVICE float load(const float* from) const { return from[i]; }
  SPEEDO_HOST_DEVICE float load(ArrayFrom from) const { return from.get<kType>(i); }
  SPEEDO_HOST_DEVICE void store(float* to, float value) const { to[i] = value; }
  SPEEDO_HOST_DEVICE void store(ArrayTo to, float value) const { to.put<kType>(i, value); }
  // f of each index.
  template <class F>
  SPEEDO_HOST_DEVICE float make(const F& f) const {
    return f(i);
  }
};
template <ElementType kType = ElementType::kFloat32>
struct FourAt {
  std::int64_t i;  // of the first

  SPEEDO_HOST_DEVICE Floats4 load(const float* from) const { return *four<Floats4>(from); }
  SPEEDO_HOST_DEVICE void store(float* to, Floats4 value) const { *four<Floats4>(to) = value; }
  SPEEDO_HOST_DEVICE Floats4 load(ArrayFrom from) const {
    if constexpr (kType == ElementType::kFloat32) {
      return load(static_cast<const float*>(from.data));
    } else {
      const Halves4 value = *four<Halves4>(static_cast<const std::uint16_t*>(from.data));
      return {from_bfloat16(value.x), from_bfloat16(value.y), from_bfloat16(value.z),
              from_bfloat16(value.w)};
    }
  }
  SPEEDO_HOST_DEVICE void store(ArrayTo to, Floats4 value) const {
    if constexpr (kType == ElementType::kFloat32) {
      store(static_cast<float*>(to.data), value);
    } else {
      *four<Halves4>(static_cast<std::uint16_t*>(to.data)) = {
          to_bfloat16(value.x), to_bfloat16(value.y), to_bfloat16(value.z), to_bfloat16(value.w)};
    }
  }
  template <class F>
  SPEEDO_HOST_DEVICE Floats4 make(const F& f) const {
    return {f(i), f(i + 1), f(i + 2), f(i + 3)};
  }

 private:
  template <class Four, class Element>
  SPEEDO_HOST_DEVICE const Four* four(const Element* array) const {
    require_aligned(array + i, sizeof(Four));
    return reinterpret_cast<const Four*>(array + i);
  }
  template <class Four, class Element>
  SPEEDO_HOST_DEVICE Four* four(Element* array) const {
    require_aligned(array + i, sizeof(Four));
    return reinterpret_cast<Four*>(array + i);
  }
  // A device stops at what the host would not mind.
  SPEEDO_HOST_DEVICE static void require_aligned([[maybe_unused]] const void* place,
                                                 [[maybe_unused]] std::size_t bytes) {
#if !defined(__CUDA_ARCH__)
    SPEEDO_ASSERT(reinterpret_cast<std::uintptr_t>(place) % bytes == 0);
#endif
  }
};

// Whether an array can be loaded by fours; a null one can.
inline bool is_aligned(const void* data, std::size_t four_bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % four_bytes == 0;
}
inline bool is_aligned(const float* array) { return is_aligned(array, sizeof(Floats4)); }
inline bool is_aligned(ArrayFrom array) {
  const bool is_float = array.type == ElementType::kFloat32;
  return is_aligned(array.data, is_float ? sizeof(Floats4) : sizeof(Halves4));
}
template <class... Arrays>
bool are_aligned(const Arrays&... arrays) {
  return (is_aligned(arrays) && ...);
}

// Calls body(place) for n elements divided over all lanes: for fours, and one by one for the rest.
template <ElementType kType = ElementType::kFloat32, class Body>
SPEEDO_HOST_DEVICE void for_each_element(const Lane& lane, std::int64_t n, bool by_fours,
                                         const Body& body) {
  const std::int64_t fours = by_fours ? n / 4 : 0;
  for (std::int64_t i = lane.first(); i < fours; i += lane.stride()) body(FourAt<kType>{4 * i});
  for (std::int64_t i = 4 * fours + lane.first(); i < n; i += lane.stride()) body(OneAt<kType>{i});
}
// Of arrays of that type.
template <class Body>
SPEEDO_HOST_DEVICE void for_each_element(const Lane& lane, std::int64_t n, ElementType type,
                                         bool by_fours, const Body& body) {
  with_type(type, [&](auto is) { for_each_element<decltype(is)::value>(lane, n, by_fours, body); });
}

}  // namespace speedo::gpu
