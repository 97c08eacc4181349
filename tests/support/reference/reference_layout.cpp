#include "support/reference/reference_layout.hpp"

#include <algorithm>

namespace speedo {

std::vector<float> read_plain(const ArrayShape& shape, Layout layout, const float* array) {
  std::vector<float> plain(static_cast<std::size_t>(shape.storage_count({})));
  for_each_element(shape, layout, [&](std::int64_t i, std::int64_t at) {
    plain[static_cast<std::size_t>(i)] = array[at];
  });
  return plain;
}

void write_plain(const ArrayShape& shape, Layout layout, const float* plain, float* array) {
  std::fill_n(array, shape.storage_count(layout), 0.0F);
  for_each_element(shape, layout, [&](std::int64_t i, std::int64_t at) { array[at] = plain[i]; });
}

std::optional<std::int64_t> find_soiled_padding(const ArrayShape& shape, Layout layout,
                                                const float* array) {
  const std::int64_t count = shape.storage_count(layout);
  if (count == shape.storage_count({})) return std::nullopt;
  std::vector<bool> is_padding(static_cast<std::size_t>(count), true);
  for_each_element(shape, layout, [&](std::int64_t /*plain*/, std::int64_t at) {
    is_padding[static_cast<std::size_t>(at)] = false;
  });
  for (std::int64_t at = 0; at < count; ++at) {
    if (is_padding[static_cast<std::size_t>(at)] && array[at] != 0.0F) return at;
  }
  return std::nullopt;
}

}  // namespace speedo
