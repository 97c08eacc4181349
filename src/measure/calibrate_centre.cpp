#include "measure/calibrate_centre.hpp"

#include <future>
#include <utility>
#include <vector>

#include <speedo/store/memory_store.hpp>
#include <speedo/train/merger.hpp>

namespace speedo {

namespace {

constexpr std::uint64_t kCentreTerm = 1;

// Waits for what `ask` hands the callback that it gets.
template <class T, class Ask>
Result<T> answer_of(const Ask& ask) {
  const auto answer = std::make_shared<std::promise<Result<T>>>();
  ask([answer](Result<T> result) { answer->set_value(std::move(result)); });
  return answer->get_future().get();
}

class StillCentre : public CalibrateCentre {
 public:
  StillCentre(const ParameterLayout& layout, Checkpoint start)
      : layout_digest_(layout.digest()), weights_(std::move(start.weights)) {}

  Result<void> publish() {
    RecordInfo info;
    info.model = layout_digest_;
    info.version = kFirst.value;
    info.element_count = weights_.size();
    return put(*store_, weights_key(), info, weights_);
  }
  std::shared_ptr<RecordStore> store() const override { return store_; }
  std::uint64_t term() const override { return 0; }
  Result<Version> contributed(WorkerId, RunId) override { return kFirst; }

 private:
  static constexpr Version kFirst{1};
  const Digest layout_digest_;
  const std::vector<float> weights_;
  const std::shared_ptr<RecordStore> store_ = make_memory_store("calibrate");
};

class MergingCentre : public CalibrateCentre {
 public:
  MergingCentre(std::shared_ptr<RecordStore> store, std::unique_ptr<Merger> merger)
      : store_(std::move(store)), merger_(std::move(merger)) {}

  std::shared_ptr<RecordStore> store() const override { return store_; }
  std::uint64_t term() const override { return kCentreTerm; }
  Result<Version> contributed(WorkerId worker, RunId run) override {
    master_command::StartMerge job{};
    job.contributions.push_back({worker, run, 1.0F});
    const Result<MergeResult> result = answer_of<MergeResult>(
        [&](auto done) { merger_->merge(std::move(job), std::move(done)); });
    if (!result) return result.error();
    return result->version;
  }

 private:
  const std::shared_ptr<RecordStore> store_;
  const std::unique_ptr<Merger> merger_;
};

}  // namespace

Result<std::unique_ptr<CalibrateCentre>> make_still_centre(JobNets& nets) {
  auto centre = std::make_unique<StillCentre>(nets.layout(), nets.take_start());
  SPEEDO_TRY(centre->publish());
  return std::unique_ptr<CalibrateCentre>(std::move(centre));
}

Result<std::unique_ptr<CalibrateCentre>> make_merging_centre(const OpenStore& open_store,
                                                             const PrivateRedis& redis,
                                                             JobNets& nets) {
  SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store,
                open_store(StoreAddress(redis.uri()), "calibrate-steps"));
  SPEEDO_TRY(store->clear());
  MergerConfig config;
  config.term = kCentreTerm;
  SPEEDO_ASSIGN(std::unique_ptr<Merger> merger,
                make_merger(config, nets.layout(), nets.solver(), nets.take_start(), store));
  const Result<Version> first =
      answer_of<Version>([&](auto done) { merger->enter_stage(0, "", std::move(done)); });
  if (!first) return first.error();
  return std::unique_ptr<CalibrateCentre>(
      std::make_unique<MergingCentre>(store, std::move(merger)));
}

}  // namespace speedo
