#include "train/replicas/step_layout.hpp"

#include <algorithm>
#include <tuple>

#include <speedo/base/assert.hpp>
#include <speedo/store/part_store.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

StepLayout::StepLayout(const PackedGradient& contribution, std::size_t contributions,
                       std::size_t parts)
    : contribution_(contribution),
      contributions_(contributions),
      parts_(parts),
      ends_(parts),
      chunks_(chunk_count(contribution.count())) {
  SPEEDO_ASSERT(contributions > 0 && parts > 0);
  for (std::size_t part = 0; part < parts; ++part) lay_out(part);
  by_piece_ = by_chunk_;
  std::ranges::sort(by_piece_, {}, [](const Run& run) {
    return std::tuple(run.piece, run.copy, run.first);
  });
  for (std::size_t piece = 0; piece <= contribution.pieces().size(); ++piece) {
    const auto begin = std::ranges::lower_bound(by_piece_, piece, {}, &Run::piece);
    pieces_.push_back(static_cast<std::size_t>(begin - by_piece_.begin()));
  }
  for (const Run& run : by_chunk_) count_ = std::max(count_, run.offset + run.count);
  list_chunks_with_values();
}

void StepLayout::list_chunks_with_values() {
  std::vector<bool> has_values(chunk_count(count_));
  for (const Run& run : by_chunk_) {
    const auto [begin, end] = chunks_of(run.offset, run.count);
    std::fill(has_values.begin() + static_cast<std::ptrdiff_t>(begin),
              has_values.begin() + static_cast<std::ptrdiff_t>(end), true);
  }
  for (std::size_t chunk = 0; chunk < has_values.size(); ++chunk) {
    if (has_values[chunk]) with_values_.push_back(chunk);
  }
}

void StepLayout::lay_out(std::size_t part) {
  std::size_t end = 0;
  for (std::size_t chunk = part; chunk < chunks_.size(); chunk += parts_) {
    chunks_[chunk].first = by_chunk_.size();
    const auto each = [&](const PackedGradient::Place& place) {
      const bool is_factor = contribution_.pieces()[place.piece].factors.has_value();
      for (std::size_t copy = 0; copy < (is_factor ? contributions_ : 1); ++copy) {
        add({.piece = place.piece,
             .copy = copy,
             .first = place.first,
             .count = place.count,
             .from = place.offset,
             .offset = 0},
            part, end);
      }
    };
    contribution_.for_places(chunk * chunk_length(),
                             chunk_elements(contribution_.count(), chunk), each);
    chunks_[chunk].second = by_chunk_.size();
  }
  ends_[part] = end;
}

// In pieces that lie in one chunk of the record, where the next chunk is another part's.
void StepLayout::add(Run run, std::size_t part, std::size_t& end) {
  while (run.count > 0) {
    const std::size_t within = end % chunk_length();
    Run piece = run;
    if (parts_ > 1) piece.count = std::min(run.count, chunk_length() - within);
    piece.offset = (end / chunk_length() * parts_ + part) * chunk_length() + within;
    by_chunk_.push_back(piece);
    end += piece.count;
    run.first += piece.count;
    run.from += piece.count;
    run.count -= piece.count;
  }
}

std::size_t StepLayout::part_count(std::size_t part) const {
  const std::size_t chunks = chunks_of_part(count_, part, parts_);
  if (chunks == 0) return 0;
  return (chunks - 1) * chunk_length() + chunk_elements(count_, part + (chunks - 1) * parts_);
}

std::span<const StepLayout::Run> StepLayout::of_chunk(std::size_t chunk) const {
  const auto [begin, end] = chunks_[chunk];
  return std::span(by_chunk_).subspan(begin, end - begin);
}

std::span<const StepLayout::Run> StepLayout::of_piece(std::size_t piece) const {
  return std::span(by_piece_).subspan(pieces_[piece], pieces_[piece + 1] - pieces_[piece]);
}

std::vector<StepLayout::Range> StepLayout::padding(std::size_t part) const {
  std::vector<Range> ranges;
  const std::size_t all = part_count(part);
  for (std::size_t at = ends_[part]; at < all;) {
    const std::size_t chunk = at / chunk_length(), within = at % chunk_length();
    const std::size_t count = std::min(all - at, chunk_length() - within);
    ranges.push_back({(chunk * parts_ + part) * chunk_length() + within, count});
    at += count;
  }
  return ranges;
}

}  // namespace speedo
