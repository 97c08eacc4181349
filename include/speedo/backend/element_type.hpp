#pragma once

#include <cstdint>

#include <speedo/base/assert.hpp>

namespace speedo {

// What the elements of an array are in memory. Operations compute in float32 whatever they read and
// write. Arrays of a net's blobs may be of the second kind, where their layout says so; all others
// are of the first.
enum class ElementType : std::uint8_t { kFloat32, kBfloat16 };

constexpr std::int64_t bytes_of_element(ElementType type) {
  return type == ElementType::kFloat32 ? 4 : 2;
}

// How many elements an operation passes over, in arrays that are all of one type.
struct Elements {
  std::int64_t count = 0;
  ElementType type = ElementType::kFloat32;

  Elements(std::int64_t floats) : count(floats) {}
  Elements(std::int64_t n, ElementType of) : count(n), type(of) {}

  // The memory that they take, in floats.
  std::int64_t memory_floats() const {
    constexpr std::int64_t kFloat = bytes_of_element(ElementType::kFloat32);
    return (count * bytes_of_element(type) + kFloat - 1) / kFloat;
  }
  // Of a device that knows no other type.
  std::int64_t floats() const {
    SPEEDO_ASSERT(type == ElementType::kFloat32);
    return count;
  }
};

// Where element i of an array lies: pointers to elements of any type are pointers to float.
inline const float* element_at(const float* array, std::int64_t i, ElementType type) {
  const auto* const first = reinterpret_cast<const char*>(array);
  return reinterpret_cast<const float*>(first + i * bytes_of_element(type));
}
inline float* element_at(float* array, std::int64_t i, ElementType type) {
  return const_cast<float*>(element_at(static_cast<const float*>(array), i, type));
}

}  // namespace speedo
