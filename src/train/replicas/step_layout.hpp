#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "train/replicas/packed_gradient.hpp"

namespace speedo {

// Where the values of a step lie in its record: in the order of the contributions' chunks, of each
// the mean of what is there, or of factors that of every contribution, one behind the other.
//
// With several parts, as many as the store has servers, what chunk C of the contributions gives is
// in part C mod parts(), and part P of the record is its chunks C with C mod parts() == P. Their
// ends are filled up with zeros, so that each part has the chunks that lie on its server.
class StepLayout {
 public:
  // `contribution` outlives it. `contributions`: that the step is made of, at least 1.
  StepLayout(const PackedGradient& contribution, std::size_t contributions, std::size_t parts);

  // Values that follow one another in a contribution and in the record.
  struct Run {
    std::size_t piece = 0;         // of contribution().pieces()
    std::size_t copy = 0;          // whose factors; 0 of a mean
    std::size_t first = 0, count = 0;  // from the piece's begin
    std::size_t from = 0, offset = 0;  // in the contribution, in the record
  };
  struct Range {
    std::size_t offset = 0, count = 0;
  };

  const PackedGradient& contribution() const { return contribution_; }
  bool is_of(std::size_t contributions, std::size_t parts) const {
    return contributions_ == contributions && parts_ == parts;
  }
  std::size_t contributions() const { return contributions_; }
  std::size_t parts() const { return parts_; }
  std::size_t count() const { return count_; }  // floats of the record
  std::size_t part_count(std::size_t part) const;
  // What comes of a chunk of the contributions.
  std::span<const Run> of_chunk(std::size_t chunk) const;
  // What a piece is put together of: whose factors first, and the order of its elements then.
  std::span<const Run> of_piece(std::size_t piece) const;
  // The chunks of the record that have values, in order; the others are all zeros.
  std::span<const std::size_t> chunks_with_values() const { return with_values_; }
  // The zeros of a part, no range in two chunks.
  std::vector<Range> padding(std::size_t part) const;

 private:
  void lay_out(std::size_t part);
  void add(Run run, std::size_t part, std::size_t& end);
  void list_chunks_with_values();

  const PackedGradient& contribution_;
  const std::size_t contributions_, parts_;
  std::size_t count_ = 0;
  std::vector<std::size_t> ends_;                            // of each part, within it
  std::vector<Run> by_chunk_, by_piece_;
  std::vector<std::pair<std::size_t, std::size_t>> chunks_;  // of each chunk: begin, end
  std::vector<std::size_t> pieces_;                          // of each piece: begin; and the end
  std::vector<std::size_t> with_values_;                     // chunks of the record
};

}  // namespace speedo
