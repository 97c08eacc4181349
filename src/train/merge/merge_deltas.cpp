#include "store/chunk_range.hpp"
#include "train/merge/part_sum.hpp"
#include "train/merge/statistic_ranges.hpp"

namespace speedo {
namespace {

// A contribution that overflows only in the sum is as bad as one that is not finite: of several it
// is not known which one, so the first is named, and the merge tried again without it.
class DeltaMerge : public ChunkMerge {
 public:
  explicit DeltaMerge(const Frame& frame)
      : record_(frame.record),
        next_(frame.next),
        statistics_(frame.layout),
        averages_(frame.job.mean && !is_elastic(frame.spec.kind)),
        skip_(is_elastic(frame.spec.kind) ? 0.0F : frame.spec.skip),
        writer_(frame.store.write(weights_key(), frame.info)) {
    const float factor = is_elastic(frame.spec.kind) ? 1.0F : frame.spec.factor;
    for (const auto& contribution : frame.contributions) {
      scales_.push_back(averages_ ? contribution.weight : contribution.weight / factor);
    }
    const float shares = sum_of_shares(frame.contributions);
    mean_scale_ = 1.0F / shares / factor;
    sum_skip_ = skip_ * shares;
  }

  Fault merge(std::size_t chunk, Parts parts) override {
    const std::span<const float> weights = chunk_of(record_, chunk);
    const std::span<float> next = chunk_of(next_, chunk);
    return for_each_block(next.size(), [&](std::size_t offset, std::size_t count) {
      const Block block{.first = chunk * chunk_length() + offset,
                        .offset = offset,
                        .from = weights.subspan(offset, count),
                        .to = next.subspan(offset, count)};
      return averages_ ? add_mean(parts, block) : add_each(parts, block);
    });
  }

  void put(std::size_t chunk) override {
    writer_->write(chunk, chunk_of(std::span<const float>(next_), chunk));
  }

  Result<void> finish(std::string state) override {
    writer_->set_state(std::move(state));
    return writer_->finish();
  }

 private:
  struct Block {
    std::size_t first, offset;  // in the record and in the chunk
    std::span<const float> from;
    std::span<float> to;
  };

  // A statistic's change is small where what it measures is: all of it counts.
  bool add(const Block& block, std::span<const float> from, std::span<const float> delta,
           float scale, float skip) const {
    if (skip <= 0.0F) return merge_add(from, delta, scale, block.to);
    bool is_finite = true;
    statistics_.for_each_part(
        block.first, block.to.size(), [&](std::size_t begin, std::size_t count, bool is_statistic) {
          const std::span<const float> weights = from.subspan(begin, count);
          const std::span<const float> change = delta.subspan(begin, count);
          const std::span<float> target = block.to.subspan(begin, count);
          const bool added = is_statistic ? merge_add(weights, change, scale, target)
                                          : merge_add_large(weights, change, scale, skip, target);
          is_finite = is_finite && added;
        });
    return is_finite;
  }

  Fault add_mean(Parts parts, const Block& block) const {
    const std::size_t offset = block.offset;
    const std::span<const float> from = block.from;
    const std::span<float> to = block.to;
    if (parts.size() == 2 && skip_ <= 0.0F) {
      const ScaledPart a{parts[0].subspan(offset, to.size()), scales_[0]};
      const ScaledPart b{parts[1].subspan(offset, to.size()), scales_[1]};
      // What is not finite anywhere on the way is not at its end; below it is found whose it is.
      if (merge_add_two(from, a, b, mean_scale_, to)) return std::nullopt;
    }
    MergeBlock memory;
    const std::span<float> sum = std::span(memory).first(to.size());
    if (const Fault fault = sum_parts(parts, scales_, offset, sum)) return fault;
    return add(block, from, sum, mean_scale_, sum_skip_) ? Fault() : Fault(0);
  }

  Fault add_each(Parts parts, const Block& block) const {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::span<const float> part = parts[i].subspan(block.offset, block.to.size());
      const std::span<const float> from = i == 0 ? block.from : block.to;
      if (!add(block, from, part, scales_[i], skip_)) return i;
    }
    return std::nullopt;
  }

  const std::span<const float> record_;
  const std::span<float> next_;
  const StatisticRanges statistics_;
  const bool averages_;
  const float skip_;
  std::vector<float> scales_;
  float mean_scale_ = 1.0F;
  float sum_skip_ = 0.0F;  // of a sum, whose mean is what is compared
  const std::unique_ptr<RecordWriter> writer_;
};

}  // namespace

std::unique_ptr<ChunkMerge> merge_deltas(const ChunkMerge::Frame& frame) {
  return std::make_unique<DeltaMerge>(frame);
}

}  // namespace speedo
