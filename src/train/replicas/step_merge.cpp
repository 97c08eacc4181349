#include "train/replicas/step_merge.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

#include "store/chunk_range.hpp"
#include "train/merge/part_sum.hpp"
#include "train/trainer/trainer_chunks.hpp"

namespace speedo {
namespace {

using Piece = PackedGradient::Piece;

// A part of one piece of the contributions: its elements there, and where its chunk has them.
struct Source {
  const Piece& piece;
  std::size_t first, count;  // from the piece's begin
  std::size_t in_chunk;
};

class StepMerge : public ChunkMerge {
 public:
  explicit StepMerge(StepFrame frame)
      : frame_(std::move(frame)),
        scales_(frame_.step.contributions(), 1.0F),
        tally_(frame_.step.count()),
        writer_(frame_.store.write(step_key(frame_.info.term), frame_.info)) {
    SPEEDO_ASSERT(frame_.values.size() == frame_.step.count());
    SPEEDO_ASSERT(frame_.info.element_count == frame_.step.count());
  }

  Fault merge(std::size_t chunk, Parts parts) override {
    Fault fault;
    for_sources(chunk, [&](const Source& source, const Piece& target) {
      if (fault) return;
      fault = source.piece.factors ? gather(source, target, parts) : mean(source, target, parts);
    });
    return fault;
  }

  void put(std::size_t chunk) override {
    for_sources(chunk, [&](const Source& source, const Piece& target) {
      if (!source.piece.factors) {
        whole(target.offset + source.first, source.count);
        return;
      }
      for (std::size_t i = 0; i < scales_.size(); ++i) {
        for_sides(source, target, i, [&](std::size_t offset, std::size_t, std::size_t count) {
          whole(offset, count);
        });
      }
    });
  }

  Result<void> finish(std::string /*state*/) override {
    SPEEDO_ASSERT(tally_.is_complete());
    writer_->set_state(encode(frame_.header));
    return writer_->finish();
  }

 private:
  template <class Visit>
  void for_sources(std::size_t chunk, const Visit& visit) const {
    const std::size_t begin = chunk * chunk_length();
    const std::size_t length = chunk_elements(frame_.contribution.count(), chunk);
    const auto each = [&](const Piece& piece, std::size_t index, std::size_t first,
                          std::size_t count) {
      visit(Source{piece, first, count, piece.offset + first - begin}, frame_.step.pieces()[index]);
    };
    frame_.contribution.for_pieces(begin, length, each);
  }

  // The left and the right factors in `source`, of contribution `i`: visit(offset in the step,
  // offset in the source, count).
  template <class Visit>
  void for_sides(const Source& source, const Piece& target, std::size_t i,
                 const Visit& visit) const {
    const FactorShape& shape = *source.piece.factors;
    const auto left = static_cast<std::size_t>(shape.rows * shape.height);
    const auto right = static_cast<std::size_t>(shape.rows * shape.width);
    const std::size_t end = source.first + source.count;
    if (source.first < left) {
      visit(target.offset + i * left + source.first, 0, std::min(end, left) - source.first);
    }
    if (end <= left) return;
    const std::size_t first = std::max(source.first, left);
    visit(target.offset + scales_.size() * left + i * right + first - left, first - source.first,
          end - first);
  }

  Fault mean(const Source& source, const Piece& target, Parts parts) {
    const std::span<float> values = frame_.values.subspan(target.offset + source.first,
                                                          source.count);
    return for_each_block(values.size(), [&](std::size_t offset, std::size_t count) -> Fault {
      const std::span<float> sum = values.subspan(offset, count);
      const Fault fault = sum_parts(parts, scales_, source.in_chunk + offset, sum);
      if (fault) return fault;
      if (scales_.size() > 1) merge_scaled(1.0F / static_cast<float>(scales_.size()), sum, sum);
      return std::nullopt;
    });
  }

  Fault gather(const Source& source, const Piece& target, Parts parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::span<const float> part = parts[i].subspan(source.in_chunk, source.count);
      if (!all_finite(part)) return i;
      for_sides(source, target, i, [&](std::size_t offset, std::size_t from, std::size_t count) {
        std::ranges::copy(part.subspan(from, count), frame_.values.subspan(offset).begin());
      });
    }
    return std::nullopt;
  }

  void whole(std::size_t offset, std::size_t count) {
    for (const std::size_t chunk : tally_.add(offset, count)) {
      writer_->write(chunk, chunk_of(std::span<const float>(frame_.values), chunk));
    }
  }

  const StepFrame frame_;
  const std::vector<float> scales_;  // in rounds every contribution counts the same
  ChunkTally tally_;                 // of the step
  const std::unique_ptr<RecordWriter> writer_;
};

}  // namespace

std::unique_ptr<ChunkMerge> merge_step(StepFrame frame) {
  return std::make_unique<StepMerge>(std::move(frame));
}

}  // namespace speedo
