#include "train/parts/part_clip.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/store/part_store.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

std::uint64_t clipped_count(std::uint64_t element_count, PartClip clip) {
  const std::size_t chunks = chunks_of_part(element_count, clip.part, clip.parts);
  if (chunks == 0) return 0;
  return std::uint64_t{chunks - 1} * chunk_length() +
         chunk_elements(element_count, clip.whole_chunk(chunks - 1));
}

ParameterLayout clip_layout(const ParameterLayout& whole, PartClip clip) {
  const auto length = static_cast<std::int64_t>(chunk_length());
  ParameterLayout clipped;
  for (const ParameterSlot& slot : whole.slots()) {
    const std::int64_t end = slot.offset + slot.count();
    for (std::int64_t from = slot.offset; from < end;) {
      const std::int64_t chunk = from / length;
      const std::int64_t to = std::min(end, (chunk + 1) * length);
      if (static_cast<std::size_t>(chunk) % clip.parts == clip.part) {
        ParameterSlot piece = slot;
        piece.shape = Shape({to - from});
        const std::int64_t place = chunk / static_cast<std::int64_t>(clip.parts);
        const std::size_t index = clipped.add(std::move(piece));
        SPEEDO_ASSERT(clipped.slot(index).offset == place * length + from % length);
      }
      from = to;
    }
  }
  SPEEDO_ASSERT(static_cast<std::uint64_t>(clipped.element_count()) ==
                clipped_count(static_cast<std::uint64_t>(whole.element_count()), clip));
  return clipped;
}

std::vector<float> clip_values(std::span<const float> whole, PartClip clip) {
  std::vector<float> part;
  part.reserve(clipped_count(whole.size(), clip));
  for (std::size_t chunk = clip.part; chunk < chunk_count(whole.size()); chunk += clip.parts) {
    const std::span<const float> values = chunk_of(whole, chunk);
    part.insert(part.end(), values.begin(), values.end());
  }
  return part;
}

void put_back(std::span<const float> part, PartClip clip, std::span<float> whole) {
  SPEEDO_ASSERT(part.size() == clipped_count(whole.size(), clip));
  for (std::size_t chunk = 0; chunk < chunk_count(part.size()); ++chunk) {
    const std::span<const float> values = chunk_of(part, chunk);
    std::copy(values.begin(), values.end(), chunk_of(whole, clip.whole_chunk(chunk)).begin());
  }
}

}  // namespace speedo
