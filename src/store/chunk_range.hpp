#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// Elements of chunk `chunk` of a record. Requires: chunk < chunk_count(element_count), or both are
// 0.
inline std::size_t chunk_elements(std::uint64_t element_count, std::size_t chunk) {
  SPEEDO_ASSERT(chunk <= element_count / chunk_length());
  const std::uint64_t first = std::uint64_t{chunk} * chunk_length();
  return static_cast<std::size_t>(std::min<std::uint64_t>(chunk_length(), element_count - first));
}

// The chunks that elements [offset, offset + count) lie in: the first, and behind the last.
// Requires: count > 0.
inline std::pair<std::size_t, std::size_t> chunks_of(std::size_t offset, std::size_t count) {
  return {offset / chunk_length(), (offset + count - 1) / chunk_length() + 1};
}

// The range of `values` that chunk `chunk` covers.
template <class T>
std::span<T> chunk_of(std::span<T> values, std::size_t chunk) {
  return values.subspan(chunk * chunk_length(), chunk_elements(values.size(), chunk));
}

// Gives `writer` every chunk of its record.
inline void write_all(RecordWriter& writer, std::span<const float> values) {
  for (std::size_t chunk = 0; chunk < chunk_count(values.size()); ++chunk) {
    writer.write(chunk, chunk_of(values, chunk));
  }
}

}  // namespace speedo
