#include <algorithm>

#include "store/chunk_range.hpp"
#include "train/merge/part_sum.hpp"

namespace speedo {
namespace {

class GradientMerge : public ChunkMerge {
 public:
  GradientMerge(const Frame& frame, MergerRule& rule)
      : step_{.iteration = static_cast<std::int64_t>(frame.job.iteration),
              .rate_scale = frame.job.lr_scale,
              .weights = frame.record,
              .next = frame.next},
        rule_(rule),
        factor_(frame.job.mean ? 1.0F / sum_of_shares(frame.contributions) : 1.0F),
        writer_(frame.store.write(weights_key(), frame.info)) {
    for (const auto& contribution : frame.contributions) {
      scales_.push_back(contribution.weight);
    }
  }

  ~GradientMerge() override {
    if (!finished_) rule_.take_back(step_.weights);
  }
  GradientMerge(const GradientMerge&) = delete;
  GradientMerge& operator=(const GradientMerge&) = delete;

  Fault merge(std::size_t chunk, Parts parts) override {
    const std::span<float> gradient = chunk_of(step_.next, chunk);
    return for_each_block(gradient.size(), [&](std::size_t offset, std::size_t count) {
      return scaled_sum_of_parts(parts, scales_, factor_, offset, gradient.subspan(offset, count));
    });
  }

  void put(std::size_t chunk) override {
    if (!applied_) return;
    if (rule_.needs_whole_gradient()) {
      rule_.stage(step_, part_of(chunk));
    } else {
      applied_ = apply(chunk);
    }
  }

  Result<void> finish(std::string state) override {
    SPEEDO_TRY(applied_);
    if (rule_.needs_whole_gradient()) SPEEDO_TRY(apply_all());
    writer_->set_state(std::move(state));
    SPEEDO_TRY(writer_->finish());
    rule_.keep();
    finished_ = true;
    return {};
  }

 private:
  Bucket part_of(std::size_t chunk) const {
    return {static_cast<std::int64_t>(chunk * chunk_length()),
            static_cast<std::int64_t>(chunk_elements(step_.next.size(), chunk))};
  }

  // The chunk's next weights, which go out.
  Result<void> apply(std::size_t chunk) {
    const Bucket whole = part_of(chunk);
    const std::int64_t length = rule_.block_length();
    for (std::int64_t offset = whole.offset; offset < whole.end();) {
      const Bucket block{offset, std::min(length, whole.end() - offset)};
      rule_.stage(step_, block);
      rule_.begin(step_, block);
      SPEEDO_TRY(read_weights(block));
      offset = block.end();
    }
    write(chunk);
    return {};
  }

  // The same of all chunks, which are staged.
  Result<void> apply_all() {
    rule_.begin(step_, {0, static_cast<std::int64_t>(step_.next.size())});
    for (std::size_t chunk = 0; chunk < chunk_count(step_.next.size()); ++chunk) {
      SPEEDO_TRY(read_weights(part_of(chunk)));
      write(chunk);
    }
    return {};
  }

  void write(std::size_t chunk) {
    writer_->write(chunk, chunk_of(std::span<const float>(step_.next), chunk));
  }

  Result<void> read_weights(const Bucket& part) {
    if (rule_.read_weights(step_, part)) return {};
    return Error{ErrorCode::kNotFinite,
                 "the update of iteration " + std::to_string(step_.iteration) +
                     " makes weights that are NaN or infinite: lower the learning rate"};
  }

  const MergerRule::Step step_;
  MergerRule& rule_;
  const float factor_;  // of the sum
  std::vector<float> scales_;
  Result<void> applied_;
  bool finished_ = false;
  const std::unique_ptr<RecordWriter> writer_;
};

}  // namespace

std::unique_ptr<ChunkMerge> merge_gradients(const ChunkMerge::Frame& frame, MergerRule& rule) {
  return std::make_unique<GradientMerge>(frame, rule);
}

}  // namespace speedo
