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

class StepMerge : public ChunkMerge {
 public:
  explicit StepMerge(StepFrame frame)
      : frame_(std::move(frame)),
        scales_(frame_.step.contributions(), 1.0F),
        tally_(frame_.values.size()) {
    SPEEDO_ASSERT(frame_.values.size() == frame_.step.part_count(frame_.part));
    for (const StepLayout::Range& range : frame_.step.padding(frame_.part)) {
      std::ranges::fill(part_of(range.offset, range.count), 0.0F);
      whole(range.offset, range.count);
    }
  }

  Fault merge(std::size_t chunk, Parts parts) override {
    const std::size_t begin = whole_chunk(chunk) * chunk_length();
    for (const StepLayout::Run& run : frame_.step.of_chunk(whole_chunk(chunk))) {
      const bool is_factor =
          frame_.step.contribution().pieces()[run.piece].factors.has_value();
      const std::size_t in_chunk = run.from - begin;
      const Fault fault = is_factor ? copy(run, in_chunk, parts) : mean(run, in_chunk, parts);
      if (fault) return fault;
    }
    return std::nullopt;
  }

  void put(std::size_t chunk) override {
    for (const StepLayout::Run& run : frame_.step.of_chunk(whole_chunk(chunk))) {
      whole(run.offset, run.count);
    }
  }

  Result<void> finish(std::string /*state*/) override {
    SPEEDO_ASSERT(tally_.is_complete());
    frame_.writer->set_state(frame_.state);
    return frame_.writer->finish();
  }

 private:
  std::size_t whole_chunk(std::size_t chunk) const {
    return frame_.part + chunk * frame_.step.parts();
  }
  // Of an element of the step.
  std::size_t within_part(std::size_t offset) const {
    return offset / chunk_length() / frame_.step.parts() * chunk_length() +
           offset % chunk_length();
  }
  std::span<float> part_of(std::size_t offset, std::size_t count) const {
    return frame_.values.subspan(within_part(offset), count);
  }

  Fault mean(const StepLayout::Run& run, std::size_t in_chunk, Parts parts) {
    const std::span<float> values = part_of(run.offset, run.count);
    const float factor = 1.0F / static_cast<float>(scales_.size());
    return for_each_block(values.size(), [&](std::size_t offset, std::size_t count) {
      return scaled_sum_of_parts(parts, scales_, factor, in_chunk + offset,
                                 values.subspan(offset, count));
    });
  }

  Fault copy(const StepLayout::Run& run, std::size_t in_chunk, Parts parts) {
    const std::span<const float> part = parts[run.copy].subspan(in_chunk, run.count);
    if (!all_finite(part)) return run.copy;
    std::ranges::copy(part, part_of(run.offset, run.count).begin());
    return std::nullopt;
  }

  void whole(std::size_t offset, std::size_t count) {
    for (const std::size_t chunk : tally_.add(within_part(offset), count)) {
      frame_.writer->write(chunk, chunk_of(std::span<const float>(frame_.values), chunk));
    }
  }

  const StepFrame frame_;
  const std::vector<float> scales_;  // in rounds every contribution counts the same
  ChunkTally tally_;                 // of the part
};

}  // namespace

std::unique_ptr<ChunkMerge> merge_step(StepFrame frame) {
  return std::make_unique<StepMerge>(std::move(frame));
}

}  // namespace speedo
