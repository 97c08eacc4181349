#pragma once

#include <cstdint>
#include <vector>

#include <speedo/backend/device.hpp>

namespace speedo::test {

// What lies in a device's memory, as tests look at it, and one value of it changed.

inline std::vector<float> values_at(Device& device, const float* source, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  device.download(values, source);
  return values;
}

inline float value_at(Device& device, const float* source) {
  return values_at(device, source, 1)[0];
}

inline void set_value(Device& device, float* target, float value) {
  device.upload(target, {&value, 1});
}

}  // namespace speedo::test
