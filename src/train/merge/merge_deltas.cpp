#include "store/chunk_range.hpp"
#include "train/merge/part_sum.hpp"

namespace speedo {
namespace {

// A contribution that overflows only in the sum is as bad as one that is not finite: of several it
// is not known which one, so the first is named, and the merge tried again without it.
bool add_scaled(std::span<const float> weights, std::span<const float> delta, float scale,
                float skip, std::span<float> target) {
  return skip > 0.0F ? merge_add_large(weights, delta, scale, skip, target)
                     : merge_add(weights, delta, scale, target);
}

class DeltaMerge : public ChunkMerge {
 public:
  explicit DeltaMerge(const Frame& frame)
      : record_(frame.record),
        next_(frame.next),
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
      const std::span<const float> from = weights.subspan(offset, count);
      const std::span<float> to = next.subspan(offset, count);
      return averages_ ? add_mean(parts, offset, from, to) : add_each(parts, offset, from, to);
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
  Fault add_mean(Parts parts, std::size_t offset, std::span<const float> from,
                 std::span<float> to) const {
    if (parts.size() == 2 && skip_ <= 0.0F) {
      const ScaledPart a{parts[0].subspan(offset, to.size()), scales_[0]};
      const ScaledPart b{parts[1].subspan(offset, to.size()), scales_[1]};
      // What is not finite anywhere on the way is not at its end; below it is found whose it is.
      if (merge_add_two(from, a, b, mean_scale_, to)) return std::nullopt;
    }
    MergeBlock memory;
    const std::span<float> sum = std::span(memory).first(to.size());
    if (const Fault fault = sum_parts(parts, scales_, offset, sum)) return fault;
    return add_scaled(from, sum, mean_scale_, sum_skip_, to) ? Fault() : Fault(0);
  }

  Fault add_each(Parts parts, std::size_t offset, std::span<const float> from,
                 std::span<float> to) const {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::span<const float> part = parts[i].subspan(offset, to.size());
      if (!add_scaled(i == 0 ? from : to, part, scales_[i], skip_, to)) return i;
    }
    return std::nullopt;
  }

  const std::span<const float> record_;
  const std::span<float> next_;
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
