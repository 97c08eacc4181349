#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <speedo/core/bucket.hpp>
#include <speedo/core/factor_shape.hpp>
#include <speedo/core/parameter_arena.hpp>

namespace speedo {

// Where the values of a gradient lie in a contribution that holds factors instead of some
// parameters, without what the factors make good. With one part: in the arena's order. With more
// the last chunks have equal shares of the factors, in front of other values, so that each part,
// which is every so many-th chunk, has as much of them: a step has them of every worker.
class PackedGradient {
 public:
  // A range of the arena, padding included, and what stands for it.
  struct Piece {
    Bucket arena;
    std::size_t count = 0;              // of floats in the contribution
    std::optional<FactorShape> factors;  // the left ones, then the right; none: the values
  };
  // Values of a piece that follow one another in the contribution.
  struct Place {
    std::size_t piece = 0;             // of pieces()
    std::size_t first = 0, count = 0;  // from the piece's begin
    std::size_t offset = 0;            // in the contribution
    std::size_t end() const { return offset + count; }
  };

  // `factors`: in the order of their slots.
  PackedGradient(const ParameterLayout& layout, std::span<const FactorShape> factors,
                 std::size_t parts = 1);

  std::size_t count() const { return count_; }
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Place> places() const { return places_; }  // by their offsets
  bool has_factors() const { return has_factors_; }

  // Calls visit(place) for what elements [offset, offset + length) of the contribution are.
  template <class Visit>
  void for_places(std::size_t offset, std::size_t length, const Visit& visit) const {
    const std::size_t end = offset + length;
    for (std::size_t index = place_at(offset); index < places_.size(); ++index) {
      Place place = places_[index];
      if (place.offset >= end) return;
      const std::size_t begin = std::max(offset, place.offset);
      const std::size_t stop = std::min(end, place.end());
      if (begin >= stop) continue;
      place.first += begin - place.offset;
      place.offset = begin;
      place.count = stop - begin;
      visit(place);
    }
  }

 private:
  // How much of the pieces has its place already: of those with factors, or of the others.
  struct Cursor {
    bool of_factors;
    std::size_t piece = 0, first = 0;
  };
  void add(const Bucket& arena, std::optional<FactorShape> factors);
  void place(Cursor& cursor, std::size_t count);
  void place_in_order();
  void place_in_shares(std::size_t parts);
  std::size_t place_at(std::size_t offset) const;

  bool has_factors_ = false;
  std::size_t count_ = 0;
  std::vector<Piece> pieces_;
  std::vector<Place> places_;
};

}  // namespace speedo
