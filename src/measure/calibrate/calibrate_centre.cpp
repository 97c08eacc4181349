#include "measure/calibrate/calibrate_centre.hpp"

#include <future>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
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

// Takes what is written and answers what is read at once, without moving anything.
class FreeWriter : public RecordWriter {
 public:
  void write(std::size_t, std::span<const float>) override {}
  void set_state(std::string) override {}
  Result<void> finish() override { return {}; }
};

class FreeReader : public RecordReader {
 public:
  explicit FreeReader(RecordInfo info) : info_(std::move(info)) {}
  const RecordInfo& info() const override { return info_; }
  void request(std::size_t, std::span<float>) override {}
  bool is_done(std::size_t) const override { return true; }
  Result<void> wait(std::size_t) override { return {}; }
  std::uint64_t checksum(std::size_t) const override { return 0; }

 private:
  const RecordInfo info_;
};

// Whoever reads finds the values that were there before.
class FreeStore : public RecordStore {
 public:
  explicit FreeStore(RecordInfo weights) : weights_(std::move(weights)) {}

  std::unique_ptr<RecordWriter> write(std::string_view, const RecordInfo&) override {
    return std::make_unique<FreeWriter>();
  }
  Result<std::unique_ptr<RecordReader>> read(std::string_view key) override {
    if (key != weights_key()) return Error{ErrorCode::kNotFound, "only weights are read"};
    return std::unique_ptr<RecordReader>(std::make_unique<FreeReader>(weights_));
  }
  std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) override {
    std::vector<Result<std::unique_ptr<RecordReader>>> readers;
    for (const std::string& key : keys) readers.push_back(read(key));
    return readers;
  }
  std::unique_ptr<AheadReader> read_ahead(std::string_view, const AheadRecord&) override {
    SPEEDO_ASSERT(false && "nothing is merged here");
    return nullptr;
  }
  Result<void> erase(std::string_view, std::uint64_t) override { return {}; }
  Result<void> clear_contributions() override { return {}; }

 private:
  const RecordInfo weights_;
};

// The trainers' own fillers have given the weights; a run's step is contributed, not applied.
class StillCentre : public CalibrateCentre {
 public:
  explicit StillCentre(const ParameterLayout& layout)
      : store_(std::make_shared<FreeStore>(info_of(layout))) {}

  std::shared_ptr<RecordStore> store() const override { return store_; }
  std::uint64_t term() const override { return 0; }
  Result<Version> contributed(WorkerId, RunId) override { return kFirst; }

 private:
  static constexpr Version kFirst{1};

  static RecordInfo info_of(const ParameterLayout& layout) {
    RecordInfo info;
    info.model = layout.digest();
    info.version = kFirst.value;
    info.element_count = static_cast<std::uint64_t>(layout.element_count());
    return info;
  }

  const std::shared_ptr<RecordStore> store_;
};

class MergingCentre : public CalibrateCentre {
 public:
  MergingCentre(std::shared_ptr<RecordStore> store, std::unique_ptr<Merger> merger)
      : store_(std::move(store)), merger_(std::move(merger)) {}

  std::shared_ptr<RecordStore> store() const override { return store_; }
  std::uint64_t term() const override { return kCentreTerm; }
  Result<Version> contributed(WorkerId worker, RunId run) override {
    MergeJob job{};
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

std::unique_ptr<CalibrateCentre> make_still_centre(const JobNets& nets) {
  return std::make_unique<StillCentre>(nets.layout());
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
