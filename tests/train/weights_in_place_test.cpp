// In rounds a worker that shares memory with its master computes with the weights where the master
// has them: the same bits, and nothing that was made of weights which were overwritten counts.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/text_format.h>

#include "support/catch.hpp"
#include "support/skip.hpp"

#include "store/chunk_range.hpp"
#include "train/trainer/learner.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::await;
using test::TrainerCluster;

constexpr std::int64_t kPlaced = 48;
// From this run in a row on.
constexpr std::uint64_t kFirstInPlace = 3;

struct SeenPlaces {
  std::vector<const float*> places;            // of each pass' weights; null: their arena
  std::function<void()> behind_forward = [] {};  // once
};

// The gradient is what the weights are, as the pass finds them.
class PlacedLearner : public Learner {
 public:
  explicit PlacedLearner(SeenPlaces& seen) : seen_(seen), backend_(test::make_backend(1)) {
    ParameterSlot slot;
    slot.layer = "all";
    slot.shape = Shape({kPlaced});
    layout_.add(slot);
    weights_ = test::value_of(Arena::create(*backend_, kPlaced));
    gradients_ = test::value_of(Arena::create_shared(*backend_, kPlaced));
  }
  const ParameterLayout& layout() const override { return layout_; }
  Backend& backend() override { return *backend_; }
  Arena& weights() override { return weights_; }
  Arena& gradients() override { return gradients_; }
  bool can_read_weights_elsewhere() const override {
    return backend_->device().memory() == MemoryKind::kHost;
  }
  void read_weights_from(const float* place) override { place_ = place; }
  const float* weights_read() override { return place_ != nullptr ? place_ : weights_.data(); }
  void set_batch_span(const BatchSpan& /*span*/) override {}
  std::uint64_t batch_size() const override { return 1; }
  std::chrono::nanoseconds data_waited() const override { return {}; }
  std::chrono::nanoseconds gone_forward() const override { return {}; }
  void keep_statistics() override {}
  void put_statistics_change_into_gradients() override {}
  Result<float> accumulate_gradients(int /*passes*/, const Hooks& hooks) override {
    if (hooks.weights_needed) SPEEDO_TRY(hooks.weights_needed({0, kPlaced}));
    seen_.places.push_back(place_);
    std::exchange(seen_.behind_forward, [] {})();
    if (hooks.last_backward) hooks.last_backward();
    backend_->copy(kPlaced, weights_read(), gradients_.data());
    if (hooks.gradient_ready) hooks.gradient_ready({0, kPlaced}, StreamEvent());
    return 0.5F;
  }

 private:
  SeenPlaces& seen_;
  const std::unique_ptr<Backend> backend_;
  ParameterLayout layout_;
  Arena weights_, gradients_;
  const float* place_ = nullptr;
};

// A master's weights in memory, all of version v equal to v, and one worker that has them as well.
struct OneWorker {
  explicit OneWorker(const std::string& solver = "", bool in_rounds = true) {
    TrainerParts parts = test::trainer_parts();
    parts.shares_memory = true;
    parts.make_learner = [this](const LearnerOptions&) -> Result<std::unique_ptr<Learner>> {
      return std::unique_ptr<Learner>(std::make_unique<PlacedLearner>(seen));
    };
    ParameterLayout layout;
    ParameterSlot slot;
    slot.layer = "all";
    slot.shape = Shape({kPlaced});
    layout.add(slot);
    model = layout.digest();
    memory = test::value_of(RecordMemory::create(
        {.slots = 3, .element_count = static_cast<std::uint64_t>(kPlaced), .model = model}));
    shared->write_in(weights_key(), memory);
    JobSpec job;
    job.solver_text = "base_lr: 0.5 lr_policy: 'fixed' random_seed: 1 " + solver;
    job.stages = {UpdateSpec{.in_rounds = in_rounds}};
    exchange = std::make_shared<WorkerMemory>(base, meet_directly(shared, 0),
                                              contribution_key(0, 0));
    Trainer::Incarnation incarnation{WorkerId{0}, contribution_key(0, 0), job, exchange->store()};
    incarnation.memory = exchange;
    trainer = make_trainer(std::move(parts));
    REQUIRE(await<Result<Digest>>(
        [&](auto done) { trainer->prepare(std::move(incarnation), done); }));
  }
  // As a master does.
  void publish(std::uint64_t version) {
    const std::size_t slot = version % 3;
    memory->open(slot, version);
    std::ranges::fill(memory->slot(slot), static_cast<float>(version));
    const auto writer = shared->write(weights_key(), info(version));
    write_all(*writer, memory->slot(slot));
    REQUIRE(writer->finish());
  }
  RecordInfo info(std::uint64_t version) const {
    RecordInfo info;
    info.model = model;
    info.version = version;
    info.element_count = kPlaced;
    return info;
  }
  RunReport train(std::uint64_t version) {
    return test::value_of(await<Result<RunReport>>([&](auto done) {
      trainer->run(TrainMessage{.run = version, .version = version}, done);
    }));
  }
  // The version whose weights the contribution was made of.
  float made_of(float rate = 0.5F) {
    std::vector<float> values(kPlaced);
    REQUIRE(get(*shared, contribution_key(0, 0), model, values));
    REQUIRE(std::ranges::count(values, values[0]) == kPlaced);
    return -values[0] / rate;
  }
  const float* place_of(std::uint64_t version) const { return memory->slot(version % 3).data(); }

  SeenPlaces seen;
  Digest model;
  std::shared_ptr<RecordStore> base = make_memory_store();
  std::shared_ptr<SharedStore> shared = std::make_shared<SharedStore>(base);
  std::shared_ptr<RecordMemory> memory;
  std::shared_ptr<WorkerMemory> exchange;
  std::unique_ptr<Trainer> trainer;
};

void run_rounds(OneWorker& worker, std::uint64_t last) {
  for (std::uint64_t version = worker.seen.places.size() + 1; version <= last; ++version) {
    worker.publish(version);
    CHECK(worker.train(version).base == Version{version});
    CHECK(worker.made_of() == static_cast<float>(version));
  }
}

bool is_direct() { return !test::kernel_choice().deferred; }

// Of a net with statistics, weights that nothing trains, and layers that share theirs.
JobSpec net_job(UpdateSpec update) {
  update.in_rounds = true;
  std::string text = test::generated_solver(
      8, "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 weight_decay: 0.002 max_iter: 100 "
         "display: 0 random_seed: 5 ", false);
  const auto put_before = [&text](const std::string& layer, const std::string& layers) {
    text.insert(text.find("layer { name: \"" + layer), layers);
  };
  put_before("relu", R"(
      layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1" }
      layer { name: "scale" type: "Scale" bottom: "ip1" top: "ip1" param { lr_mult: 0 } })");
  put_before("ip2", R"(
      layer { name: "one" type: "InnerProduct" bottom: "ip1" top: "one"
              inner_product_param { num_output: 24 weight_filler { type: "xavier" } }
              param { name: "w" } param { name: "b" } }
      layer { name: "two" type: "InnerProduct" bottom: "one" top: "two"
              inner_product_param { num_output: 24 weight_filler { type: "xavier" } }
              param { name: "w" } param { name: "b" } }
      layer { name: "near" type: "EuclideanLoss" bottom: "two" bottom: "ip1" top: "near"
              loss_weight: 0.01 })");
  return {.solver_text = text, .base = {}, .stages = {update}, .expected_workers = 2};
}

std::vector<float> train_net(const JobSpec& job, bool shares_memory) {
  TrainerParts parts = test::trainer_parts();
  parts.shares_memory = shares_memory;
  TrainerCluster cluster(job, 2, {.parts = parts});
  for (int round = 0; round < 8; ++round) cluster.round();
  return cluster.weights();
}

}  // namespace

TEST_CASE("in rounds weights are read where the master has them") {
  if (!is_direct()) SPEEDO_SKIP("a device reads its own memory");
  OneWorker worker;
  run_rounds(worker, 6);
  for (std::uint64_t version = 1; version <= 6; ++version) {
    CAPTURE(version);
    const float* const place = version < kFirstInPlace ? nullptr : worker.place_of(version);
    CHECK(worker.seen.places[version - 1] == place);
  }
}

TEST_CASE("outside rounds weights are copied, however regularly they come") {
  OneWorker worker("", false);
  run_rounds(worker, 6);
  CHECK(std::ranges::count(worker.seen.places, nullptr) == 6);
}

TEST_CASE("weights are copied for layers that carry values from one pass to the next") {
  if (!is_direct()) SPEEDO_SKIP("a device reads its own memory");
  const auto reads_elsewhere = [](const std::string& layers) {
    const JobSpec job{
        .solver_text = "base_lr: 0.1 lr_policy: 'fixed' max_iter: 9 net_param { " + layers + " }",
        .base = {},
        .stages = {{}}};
    caffe::SolverParameter solver;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(job.solver_text, &solver));
    std::atomic<std::uint64_t> progress{0};
    const TrainerParts parts = test::trainer_parts();
    const auto learner = test::value_of(make_net_learner(
        parts, {.job = job, .solver = solver, .start_fraction = 0.0, .progress = progress}));
    return learner->can_read_weights_elsewhere();
  };
  const std::string data = R"(
      layer { name: "data" type: "DummyData" top: "data" top: "cont" dummy_data_param {
        shape { dim: 2 dim: 3 dim: 4 } shape { dim: 2 dim: 3 } } })";
  const std::string loss = R"(
      layer { name: "loss" type: "Reduction" bottom: "out" top: "loss" loss_weight: 1 })";
  CHECK(reads_elsewhere(data + R"(layer { name: "out" type: "InnerProduct" bottom: "data" top: "out"
      inner_product_param { num_output: 5 } })" +
                        loss));
  CHECK(!reads_elsewhere(data + R"(layer { name: "out" type: "LSTM" bottom: "data" bottom: "cont"
      top: "out" recurrent_param { num_output: 5 } })" +
                         loss));
}

TEST_CASE("what was computed with weights that were overwritten is computed again, with copies") {
  OneWorker worker("momentum: 0.9");
  for (std::uint64_t version = 1; version <= 3; ++version) {
    worker.publish(version);
    worker.train(version);
  }
  worker.publish(4);
  worker.seen.behind_forward = [&] {
    for (std::uint64_t newer = 5; newer <= 7; ++newer) worker.publish(newer);
  };
  const RunReport report = worker.train(4);
  if (!is_direct()) return;
  CHECK(report.base == Version{7});
  // Without the momentum of before, which the step with the other weights has changed.
  CHECK(worker.made_of() == 7.0F);
  CHECK(worker.seen.places.back() == nullptr);
  for (std::uint64_t version = 8; version <= 12; ++version) {
    worker.publish(version);
    CHECK(worker.train(version).base == Version{version});
    CHECK(worker.seen.places.back() == nullptr);
  }
}

TEST_CASE("weights come from the store as ever when the memory is gone, and from memory again") {
  OneWorker worker;
  run_rounds(worker, 4);
  const std::shared_ptr<SharedStore> store = worker.exchange->store();
  store->read_from(weights_key(), nullptr);
  REQUIRE(put(*worker.base, weights_key(), worker.info(5), std::vector<float>(kPlaced, 5.0F)));
  CHECK(worker.train(5).base == Version{5});
  CHECK(worker.made_of() == 5.0F);
  CHECK(worker.seen.places.back() == nullptr);
  store->read_from(weights_key(), test::value_of(SharedRecord::make(worker.memory->board(),
                                                                    worker.memory->values())));
  run_rounds(worker, 7);
  if (is_direct()) CHECK(worker.seen.places.back() == worker.place_of(7));
}

TEST_CASE("a net that reads its weights in place has the bits of one that copies them") {
  UpdateSpec update;
  update.kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const JobSpec job = net_job(update);
  CHECK(train_net(job, true) == train_net(job, false));
}

TEST_CASE("what is not finite is found in weights that lie in place") {
  TrainerParts parts = test::trainer_parts();
  parts.shares_memory = true;
  TrainerCluster cluster(net_job({}), 1, {.parts = parts});
  for (std::uint64_t round = 1; round < kFirstInPlace; ++round) cluster.round();
  const auto store = std::dynamic_pointer_cast<SharedStore>(cluster.store());
  REQUIRE(store);
  const std::shared_ptr<RecordMemory> memory = store->memory_of(weights_key());
  REQUIRE(memory);
  for (std::size_t slot = 0; slot < memory->shape().slots; ++slot) {
    memory->slot(slot)[0] = std::numeric_limits<float>::quiet_NaN();
  }
  const RunReport report = cluster.train(0);
  CHECK(std::isnan(report.loss));
  CHECK(report.fault.starts_with("the weights of layer 'ip1'"));
}

}  // namespace speedo
