#pragma once

#include <vector>

#include <speedo/backend/layout.hpp>

namespace speedo {

// Arrays of any layout as plain ones, element by element: so the reference operations need to know
// the plain order only.

inline std::int64_t layout_index(const ArrayShape& shape, Layout layout, std::int64_t n,
                                 std::int64_t c, std::int64_t position) {
  const std::int64_t blocks = layout.channels(shape.channels) / layout.block;
  return ((n * blocks + c / layout.block) * shape.spatial + position) * layout.block +
         c % layout.block;
}

// Calls visit(index in the plain array, index in the array).
template <class Visit>
void for_each_element(const ArrayShape& shape, Layout layout, const Visit& visit) {
  std::int64_t plain = 0;
  for (std::int64_t n = 0; n < shape.batch; ++n) {
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      const std::int64_t first = layout_index(shape, layout, n, c, 0);
      for (std::int64_t p = 0; p < shape.spatial; ++p) visit(plain++, first + p * layout.block);
    }
  }
}

inline std::vector<float> read_plain(const ArrayShape& shape, Layout layout, const float* array) {
  std::vector<float> plain(static_cast<std::size_t>(shape.storage_count({})));
  for_each_element(shape, layout, [&](std::int64_t i, std::int64_t at) {
    plain[static_cast<std::size_t>(i)] = array[at];
  });
  return plain;
}

// Padding becomes zero.
inline void write_plain(const ArrayShape& shape, Layout layout, const float* plain, float* array) {
  std::vector<float> result(static_cast<std::size_t>(shape.storage_count(layout)), 0.0F);
  for_each_element(shape, layout, [&](std::int64_t i, std::int64_t at) {
    result[static_cast<std::size_t>(at)] = plain[i];
  });
  for (std::size_t i = 0; i < result.size(); ++i) array[i] = result[i];
}

}  // namespace speedo
