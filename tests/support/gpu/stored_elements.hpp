#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <speedo/backend/element_type.hpp>
#include <speedo/base/bfloat16.hpp>

namespace speedo::test {

// One element of an array of either type, as a float.
inline float read_element(const void* at, ElementType type) {
  if (type == ElementType::kFloat32) {
    float value = 0.0F;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, at, sizeof half);
  return from_bfloat16(half);
}

inline void write_element(float value, void* at, ElementType type) {
  if (type == ElementType::kFloat32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const std::uint16_t half = to_bfloat16(value);
  std::memcpy(at, &half, sizeof half);
}

// All elements of one.
inline std::vector<float> read_elements(const void* array, std::int64_t count, ElementType type) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const auto width = static_cast<std::size_t>(bytes_of_element(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = read_element(static_cast<const char*>(array) + i * width, type);
  }
  return values;
}

inline void write_elements(const std::vector<float>& values, void* array, ElementType type) {
  const auto width = static_cast<std::size_t>(bytes_of_element(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    write_element(values[i], static_cast<char*>(array) + i * width, type);
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
