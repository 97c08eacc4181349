#include "train/replicas/packed_gradient.hpp"

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

PackedGradient::PackedGradient(const ParameterLayout& layout, std::span<const FactorShape> factors,
                               std::size_t parts)
    : has_factors_(!factors.empty()) {
  SPEEDO_ASSERT(parts > 0);
  std::int64_t done = 0;
  for (const FactorShape& shape : factors) {
    const ParameterSlot& slot = layout.slots()[shape.slot];
    SPEEDO_ASSERT(slot.offset >= done && shape.height * shape.width == slot.count());
    SPEEDO_ASSERT(shape.factor_count() <= slot.count());
    add({done, slot.offset - done}, std::nullopt);
    add({slot.offset, slot.count()}, shape);
    done = slot.offset + slot.count();
  }
  add({done, layout.element_count() - done}, std::nullopt);
  if (parts > 1 && has_factors_) {
    place_in_shares(parts);
  } else {
    place_in_order();
  }
  SPEEDO_ASSERT(places_.empty() || places_.back().end() == count_);
}

void PackedGradient::add(const Bucket& arena, std::optional<FactorShape> factors) {
  if (arena.count == 0) return;
  const auto count = static_cast<std::size_t>(factors ? factors->factor_count() : arena.count);
  pieces_.push_back({arena, count, factors});
  count_ += count;
}

void PackedGradient::place_in_order() {
  std::size_t offset = 0;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    places_.push_back({.piece = piece, .first = 0, .count = pieces_[piece].count,
                       .offset = offset});
    offset += pieces_[piece].count;
  }
}

// As few of the last chunks as hold the factors, but as many from each part.
void PackedGradient::place_in_shares(std::size_t parts) {
  std::size_t left = 0;
  for (const Piece& piece : pieces_) left += piece.factors ? piece.count : 0;
  const std::size_t chunks = chunk_count(count_), row = parts * chunk_length();
  const std::size_t whole_rows = chunks < parts ? chunks : chunks / parts * parts;
  const std::size_t sharing = std::min(whole_rows, (left + row - 1) / row * parts);
  std::vector<std::size_t> shares(chunks);
  for (std::size_t chunk = chunks; chunk-- > 0 && left > 0;) {
    const std::size_t first = chunks - sharing;
    const std::size_t still = chunk >= first ? chunk - first + 1 : 1;
    shares[chunk] = std::min(chunk_elements(count_, chunk), (left + still - 1) / still);
    left -= shares[chunk];
  }
  Cursor factors{.of_factors = true}, values{.of_factors = false};
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    place(factors, shares[chunk]);
    place(values, chunk_elements(count_, chunk) - shares[chunk]);
  }
}

// The next so many values of the cursor's pieces.
void PackedGradient::place(Cursor& cursor, std::size_t count) {
  while (count > 0) {
    const Piece& piece = pieces_.at(cursor.piece);
    const bool is_of_it = piece.factors.has_value() == cursor.of_factors;
    if (!is_of_it || cursor.first == piece.count) {
      cursor.piece += 1;
      cursor.first = 0;
      continue;
    }
    const std::size_t taken = std::min(count, piece.count - cursor.first);
    const std::size_t offset = places_.empty() ? 0 : places_.back().end();
    places_.push_back(
        {.piece = cursor.piece, .first = cursor.first, .count = taken, .offset = offset});
    cursor.first += taken;
    count -= taken;
  }
}

std::size_t PackedGradient::place_at(std::size_t offset) const {
  const auto after = std::ranges::upper_bound(places_, offset, {}, &Place::offset);
  return after == places_.begin() ? 0 : static_cast<std::size_t>(after - places_.begin()) - 1;
}

}  // namespace speedo
