#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

#include "store/chunk_range.hpp"
#include "train/merge/chunk_merge.hpp"
#include "train/merge/part_sum.hpp"

namespace speedo {
namespace {

class LocalMerge : public ChunkMerge {
 public:
  LocalMerge(const Frame& frame, std::vector<std::vector<float>>& locals)
      : store_(frame.store),
        record_(frame.record),
        next_(frame.next),
        locals_(locals),
        writer_(frame.store.write(weights_key(), frame.info)) {
    for (const auto& contribution : frame.contributions) {
      rates_.push_back(frame.spec.moving_rate * contribution.weight);
      RecordInfo info = frame.info;
      info.version = contribution.run.value;
      info.worker = contribution.worker.value;
      infos_.push_back(std::move(info));
    }
    if (locals_.size() < rates_.size()) {
      locals_.resize(rates_.size(), std::vector<float>(record_.size()));
    }
  }

  Fault merge(std::size_t chunk, Parts parts) override {
    const std::span<const float> centre = chunk_of(record_, chunk);
    const std::span<float> next = chunk_of(next_, chunk);
    return for_each_block(next.size(), [&](std::size_t offset, std::size_t count) -> Fault {
      const std::span<float> to = next.subspan(offset, count);
      MergeBlock memory;
      const std::span<float> difference = std::span(memory).first(count);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::span<const float> part = parts[i].subspan(offset, count);
        const std::span<float> local =
            chunk_of(std::span(locals_[i]), chunk).subspan(offset, count);
        std::ranges::copy(part, local.begin());
        elastic_difference(centre.subspan(offset, count), rates_[i], local, difference);
        const std::span<const float> from = i == 0 ? centre.subspan(offset, count) : to;
        if (!merge_add(from, difference, 1.0F, to)) return i;
      }
      return std::nullopt;
    });
  }

  void put(std::size_t chunk) override {
    if (back_.empty()) {
      held_back_.push_back(chunk);
    } else {
      put_back(chunk);
    }
    writer_->write(chunk, chunk_of(std::span<const float>(next_), chunk));
  }

  void ordered() override {
    for (const RecordInfo& info : infos_) {
      back_.push_back(store_.write(local_key(info.term, info.worker), info));
    }
    for (const std::size_t chunk : held_back_) put_back(chunk);
  }

  Result<void> finish(std::string state) override {
    SPEEDO_ASSERT(!back_.empty());
    for (const auto& local : back_) SPEEDO_TRY(local->finish());
    writer_->set_state(std::move(state));
    return writer_->finish();
  }

 private:
  void put_back(std::size_t chunk) {
    for (std::size_t i = 0; i < back_.size(); ++i) {
      back_[i]->write(chunk, chunk_of(std::span<const float>(locals_[i]), chunk));
    }
  }

  RecordStore& store_;
  const std::span<const float> record_;
  const std::span<float> next_;
  std::vector<std::vector<float>>& locals_;
  std::vector<float> rates_;
  std::vector<RecordInfo> infos_;         // of what goes back
  std::vector<std::size_t> held_back_;    // chunks that were put before the merge was ordered
  std::vector<std::unique_ptr<RecordWriter>> back_;
  const std::unique_ptr<RecordWriter> writer_;
};

}  // namespace

std::unique_ptr<ChunkMerge> merge_locals(const ChunkMerge::Frame& frame,
                                         std::vector<std::vector<float>>& locals) {
  return std::make_unique<LocalMerge>(frame, locals);
}

}  // namespace speedo
