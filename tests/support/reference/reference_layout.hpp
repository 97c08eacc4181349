#pragma once

#include <cstdint>
#include <optional>
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

std::vector<float> read_plain(const ArrayShape& shape, Layout layout, const float* array);

// Padding becomes zero.
void write_plain(const ArrayShape& shape, Layout layout, const float* plain, float* array);

// The first element of the padding that is not zero, as an index in the array.
std::optional<std::int64_t> find_soiled_padding(const ArrayShape& shape, Layout layout,
                                                const float* array);

}  // namespace speedo
