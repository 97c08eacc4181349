#pragma once

#include <cstdint>

#include <speedo/base/assert.hpp>

#include "gpu/launch/kernel.hpp"

namespace speedo::gpu {

// Loops over arrays whose bodies are written once: for single elements, and for four neighbours,
// which a device loads and stores at once.

struct alignas(16) Floats4 {
  float x, y, z, w;
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

// The places of one element, and of four.
struct OneAt {
  std::int64_t i;

  SPEEDO_HOST_DEVICE float load(const float* from) const { return from[i]; }
  SPEEDO_HOST_DEVICE void store(float* to, float value) const { to[i] = value; }
  // f of each index.
  template <class F>
  SPEEDO_HOST_DEVICE float make(const F& f) const {
    return f(i);
  }
};
struct FourAt {
  std::int64_t i;  // of the first

  SPEEDO_HOST_DEVICE Floats4 load(const float* from) const {
    require_aligned(from + i);
    return *reinterpret_cast<const Floats4*>(from + i);
  }
  SPEEDO_HOST_DEVICE void store(float* to, Floats4 value) const {
    require_aligned(to + i);
    *reinterpret_cast<Floats4*>(to + i) = value;
  }
  // A device stops at what the host would not mind.
  SPEEDO_HOST_DEVICE static void require_aligned([[maybe_unused]] const float* place) {
#if !defined(__CUDA_ARCH__)
    SPEEDO_ASSERT(reinterpret_cast<std::uintptr_t>(place) % sizeof(Floats4) == 0);
#endif
  }
  template <class F>
  SPEEDO_HOST_DEVICE Floats4 make(const F& f) const {
    return {f(i), f(i + 1), f(i + 2), f(i + 3)};
  }
};

// Whether the arrays can be loaded by fours; null ones can.
template <class... Pointers>
bool are_aligned(const Pointers*... arrays) {
  return ((reinterpret_cast<std::uintptr_t>(arrays) % sizeof(Floats4) == 0) && ...);
}

// Calls body(place) for n elements divided over all lanes: for fours, and one by one for the rest.
template <class Body>
SPEEDO_HOST_DEVICE void for_each_element(const Lane& lane, std::int64_t n, bool by_fours,
                                         const Body& body) {
  const std::int64_t fours = by_fours ? n / 4 : 0;
  for (std::int64_t i = lane.first(); i < fours; i += lane.stride()) body(FourAt{4 * i});
  for (std::int64_t i = 4 * fours + lane.first(); i < n; i += lane.stride()) body(OneAt{i});
}

}  // namespace speedo::gpu
