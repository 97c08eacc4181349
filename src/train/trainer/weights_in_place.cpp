#include "train/trainer/weights_in_place.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include <speedo/base/limits.hpp>

namespace speedo {

std::optional<WeightsInPlace> WeightsInPlace::take(std::unique_ptr<RecordReader>& reader) {
  const std::size_t chunks = chunk_count(reader->info().element_count);
  const float* values = nullptr;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::span<const float> here = reader->in_place(chunk);
    if (chunk == 0) values = here.data();
    if (here.empty() || here.data() != values + chunk * chunk_length()) return std::nullopt;
  }
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(values) % kArenaAlignmentBytes == 0;
  if (values == nullptr || !is_aligned) return std::nullopt;
  return WeightsInPlace(std::move(reader), values);
}

bool WeightsInPlace::are_still() const {
  const std::size_t chunks = chunk_count(reader_->info().element_count);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    if (!reader_->confirm(chunk)) return false;
  }
  return true;
}

}  // namespace speedo
