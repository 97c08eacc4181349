#pragma once

#include <cstdint>
#include <type_traits>

#include <speedo/backend/element_type.hpp>
#include <speedo/base/bfloat16.hpp>

#include "gpu/launch/kernel.hpp"

namespace speedo::gpu {

// Arrays of either type of elements as kernels see them, which compute in float32. Loops know the
// type when they are compiled: asked for at each element, it makes each load wait for the last one.

struct ArrayFrom {
  const void* data = nullptr;
  ElementType type = ElementType::kFloat32;

  SPEEDO_HOST_DEVICE bool is_null() const { return data == nullptr; }
  template <ElementType kType>
  SPEEDO_HOST_DEVICE float get(std::int64_t i) const {
    if constexpr (kType == ElementType::kFloat32) {
      return static_cast<const float*>(data)[i];
    } else {
      return from_bfloat16(static_cast<const std::uint16_t*>(data)[i]);
    }
  }
  SPEEDO_HOST_DEVICE float operator[](std::int64_t i) const {
    return type == ElementType::kFloat32 ? get<ElementType::kFloat32>(i)
                                         : get<ElementType::kBfloat16>(i);
  }
};

struct ArrayTo {
  void* data = nullptr;
  ElementType type = ElementType::kFloat32;

  SPEEDO_HOST_DEVICE operator ArrayFrom() const { return {data, type}; }
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void put(std::int64_t i, float value) const {
    if constexpr (kType == ElementType::kFloat32) {
      static_cast<float*>(data)[i] = value;
    } else {
      static_cast<std::uint16_t*>(data)[i] = to_bfloat16(value);
    }
  }
  SPEEDO_HOST_DEVICE void put(std::int64_t i, float value) const {
    if (type == ElementType::kFloat32) {
      put<ElementType::kFloat32>(i, value);
    } else {
      put<ElementType::kBfloat16>(i, value);
    }
  }
};

// Calls body(type as an integral_constant).
template <class Body>
SPEEDO_HOST_DEVICE void with_type(ElementType type, const Body& body) {
  if (type == ElementType::kFloat32) {
    body(std::integral_constant<ElementType, ElementType::kFloat32>());
  } else {
    body(std::integral_constant<ElementType, ElementType::kBfloat16>());
  }
}

}  // namespace speedo::gpu
