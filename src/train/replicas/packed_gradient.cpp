#include "train/replicas/packed_gradient.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {

PackedGradient::PackedGradient(const ParameterLayout& layout, std::span<const FactorShape> factors)
    : has_factors_(!factors.empty()) {
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
}

void PackedGradient::add(const Bucket& arena, std::optional<FactorShape> factors) {
  if (arena.count == 0) return;
  const auto count = static_cast<std::size_t>(factors ? factors->factor_count() : arena.count);
  pieces_.push_back({arena, count_, count, factors});
  count_ += count;
}

std::size_t PackedGradient::piece_at(std::size_t offset) const {
  const auto after = std::ranges::upper_bound(pieces_, offset, {}, &Piece::offset);
  return after == pieces_.begin() ? 0 : static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

}  // namespace speedo
