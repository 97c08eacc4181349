#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <speedo/backend/element_type.hpp>
#include <speedo/base/bfloat16.hpp>

namespace speedo::test {

// The elements of an array of either type, as floats.
inline std::vector<float> read_elements(const void* array, std::int64_t count, ElementType type) {
  std::vector<float> values(static_cast<std::size_t>(count));
  if (type == ElementType::kFloat32) {
    if (count > 0) std::memcpy(values.data(), array, values.size() * sizeof(float));
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, static_cast<const char*>(array) + i * sizeof half, sizeof half);
    values[i] = from_bfloat16(half);
  }
  return values;
}

inline void write_elements(const std::vector<float>& values, void* array, ElementType type) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == ElementType::kFloat32) {
      std::memcpy(static_cast<char*>(array) + i * sizeof(float), &values[i], sizeof(float));
    } else {
      const std::uint16_t half = to_bfloat16(values[i]);
      std::memcpy(static_cast<char*>(array) + i * sizeof half, &half, sizeof half);
    }
  }
}

// An array of these elements, in as many floats as hold it.
inline std::vector<float> stored_as(const std::vector<float>& values, ElementType type) {
  if (type == ElementType::kFloat32) return values;
  std::vector<float> array((values.size() + 1) / 2);
  write_elements(values, array.data(), type);
  return array;
}

}  // namespace speedo::test
