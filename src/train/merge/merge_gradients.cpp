#include <algorithm>

#include "store/chunk_range.hpp"
#include "train/merge/part_sum.hpp"

namespace speedo {
namespace {

class GradientMerge : public ChunkMerge {
 public:
  GradientMerge(const Frame& frame, MergerRule& rule)
      : record_(frame.record),
        next_(frame.next),
        rule_(rule),
        iteration_(frame.job.iteration),
        lr_scale_(frame.job.lr_scale),
        shares_(frame.job.mean ? sum_of_shares(frame.contributions) : 1.0F),
        writer_(frame.store.write(weights_key(), frame.info)) {
    for (const auto& contribution : frame.contributions) {
      scales_.push_back(contribution.weight);
    }
  }

  ~GradientMerge() override {
    if (!finished_) rule_.take_back(record_);
  }
  GradientMerge(const GradientMerge&) = delete;
  GradientMerge& operator=(const GradientMerge&) = delete;

  Fault merge(std::size_t chunk, Parts parts) override {
    const std::span<float> gradient = rule_.gradient(part_of(chunk));
    return for_each_block(gradient.size(), [&](std::size_t offset, std::size_t count) -> Fault {
      const std::span<float> sum = gradient.subspan(offset, count);
      if (const Fault fault = sum_parts(parts, scales_, offset, sum)) return fault;
      if (shares_ != 1.0F) merge_scaled(1.0F / shares_, sum, sum);
      return std::nullopt;
    });
  }

  void put(std::size_t chunk) override {
    if (!applied_) return;
    if (rule_.needs_whole_gradient()) {
      rule_.stage(part_of(chunk));
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
            static_cast<std::int64_t>(chunk_elements(record_.size(), chunk))};
  }

  // The chunk's next weights, which go out.
  Result<void> apply(std::size_t chunk) {
    const Bucket whole = part_of(chunk);
    const std::int64_t length = rule_.block_length();
    for (std::int64_t offset = whole.offset; offset < whole.end();) {
      const Bucket block{offset, std::min(length, whole.end() - offset)};
      rule_.stage(block);
      begin(block);
      SPEEDO_TRY(read_weights(block));
      offset = block.end();
    }
    writer_->write(chunk, chunk_of(next_, chunk));
    return {};
  }

  // The same of all chunks, which are staged.
  Result<void> apply_all() {
    begin({0, static_cast<std::int64_t>(record_.size())});
    for (std::size_t chunk = 0; chunk < chunk_count(record_.size()); ++chunk) {
      SPEEDO_TRY(read_weights(part_of(chunk)));
      writer_->write(chunk, chunk_of(next_, chunk));
    }
    return {};
  }

  void begin(const Bucket& bucket) {
    rule_.begin(static_cast<std::int64_t>(iteration_), lr_scale_, bucket, record_);
  }

  Result<void> read_weights(const Bucket& part) {
    const std::span<float> next = next_.subspan(static_cast<std::size_t>(part.offset),
                                                static_cast<std::size_t>(part.count));
    if (rule_.read_weights(part, record_, next)) return {};
    return Error{ErrorCode::kNotFinite,
                 "the update of iteration " + std::to_string(iteration_) +
                     " makes weights that are NaN or infinite: lower the learning rate"};
  }

  const std::span<const float> record_;
  const std::span<float> next_;
  MergerRule& rule_;
  const std::uint64_t iteration_;
  const float lr_scale_;
  const float shares_;  // that the sum is divided by
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
