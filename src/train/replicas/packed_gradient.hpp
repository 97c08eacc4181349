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

// Where the values of a gradient lie in a record that holds factors instead of some parameters: in
// the arena's order, without what the factors make good. Of a step all contributions' left factors
// come first, one behind the other, then all right ones.
class PackedGradient {
 public:
  // A range of the arena, padding included, and what stands for it in the record.
  struct Piece {
    Bucket arena;
    std::size_t offset = 0, count = 0;     // in the record
    std::optional<FactorShape> factors;    // none: the values themselves
    std::size_t end() const { return offset + count; }
  };

  // `factors`: in the order of their slots. `contributions`: that a step was made of; of a
  // contribution itself, 1.
  PackedGradient(const ParameterLayout& layout, std::span<const FactorShape> factors,
                 std::size_t contributions);

  std::size_t count() const { return count_; }
  std::size_t contributions() const { return contributions_; }
  std::span<const Piece> pieces() const { return pieces_; }
  bool has_factors() const { return has_factors_; }

  // Calls visit(piece, index of the piece, first, length) for what elements [offset, offset +
  // length) of the record are of each piece; `first` counts from the piece's begin in the record.
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

  std::size_t contributions_, count_ = 0;
  bool has_factors_ = false;
  std::vector<Piece> pieces_;
};

}  // namespace speedo
