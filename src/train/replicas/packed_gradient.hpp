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
// parameters: in the arena's order, without what the factors make good. Of factors the left ones
// come first.
class PackedGradient {
 public:
  // A range of the arena, padding included, and what stands for it in the contribution.
  struct Piece {
    Bucket arena;
    std::size_t offset = 0, count = 0;     // in the contribution
    std::optional<FactorShape> factors;    // none: the values themselves
    std::size_t end() const { return offset + count; }
  };

  // `factors`: in the order of their slots.
  PackedGradient(const ParameterLayout& layout, std::span<const FactorShape> factors);

  std::size_t count() const { return count_; }
  std::span<const Piece> pieces() const { return pieces_; }
  bool has_factors() const { return has_factors_; }

  // Calls visit(piece, index of the piece, first, length) for what elements [offset, offset +
  // length) of the contribution are of each piece; `first` counts from the piece's begin there.
  template <class Visit>
  void for_pieces(std::size_t offset, std::size_t length, const Visit& visit) const {
    const std::size_t end = offset + length;
    for (std::size_t index = piece_at(offset); index < pieces_.size(); ++index) {
      const Piece& piece = pieces_[index];
      if (piece.offset >= end) return;
      const std::size_t begin = std::max(offset, piece.offset);
      const std::size_t stop = std::min(end, piece.end());
      if (begin < stop) visit(piece, index, begin - piece.offset, stop - begin);
    }
  }

 private:
  std::size_t piece_at(std::size_t offset) const;
  void add(const Bucket& arena, std::optional<FactorShape> factors);

  std::size_t count_ = 0;
  bool has_factors_ = false;
  std::vector<Piece> pieces_;
};

}  // namespace speedo
