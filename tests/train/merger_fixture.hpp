#pragma once

#include <speedo/train/merger.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "caffe.pb.h"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "train/parts/joined_engine.hpp"

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo::test {

// Two whole chunks and a bit, and more than are merged inline.
inline constexpr std::size_t kManyChunks = 6 * kChunkElements + 16;

template <class T>
void require(const Result<T>& result) {
  INFO((result ? "" : result.error().message));
  REQUIRE(result.has_value());
}

// Each by itself, as the fixtures make millions of them.
inline std::vector<float> random_floats(std::size_t count, float range, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = mix64(mix64(seed) + i);
    values[i] = range * (static_cast<float>(bits >> 40U) * 0x1p-23F - 1.0F);
  }
  return values;
}

// What fixtures that are made while it lives have as their solver's type, instead of SGD, and what
// norm it clips gradients to, if any.
class FixtureSolver {
 public:
  explicit FixtureSolver(std::string type, float clip = kNoClip) {
    current() = {std::move(type), clip};
  }
  ~FixtureSolver() { current() = {}; }
  FixtureSolver(const FixtureSolver&) = delete;
  FixtureSolver& operator=(const FixtureSolver&) = delete;

  static void fill(caffe::SolverParameter& solver) {
    const std::string& type = current().type;
    solver.set_type(type);
    solver.set_clip_gradients(current().clip);
    solver.set_base_lr(0.1F);
    solver.set_lr_policy("fixed");
    if (type != "AdaGrad" && type != "RMSProp") solver.set_momentum(0.9F);
    solver.set_weight_decay(0.01F);
  }

 private:
  static constexpr float kNoClip = -1.0F;  // as in Caffe
  struct Choice {
    std::string type = "SGD";
    float clip = kNoClip;
  };
  static Choice& current() {
    static Choice choice;
    return choice;
  }
};
inline constexpr const char* kSolverTypes[] = {"SGD",     "Nesterov", "AdaGrad",
                                               "RMSProp", "AdaDelta", "Adam"};

inline MergerConfig config_of(const UpdateSpec& update) { return {.stages = {update}}; }

// A merger, the store it works on, and workers made of random numbers.
struct MergerFixture {
  using Runs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // worker, run

  explicit MergerFixture(const MergerConfig& config, std::size_t count,
                         std::shared_ptr<RecordStore> the_store = nullptr,
                         const Checkpoint* from = nullptr)
      : MergerFixture(config, count, std::move(the_store), from, nullptr) {}

  // With a desk: by parts. Then the store is a ParameterStore.
  MergerFixture(const MergerConfig& config, std::size_t count,
                std::shared_ptr<RecordStore> the_store, const Checkpoint* from,
                const std::shared_ptr<PartDesk>& desk)
      : store(the_store ? std::move(the_store) : std::make_shared<ChunkedStore>(map, "m")) {
    // Made here and not on the merger's thread; see tests/store/store_under_test.hpp.
    static const bool logging = (set_up_logging(), true);
    REQUIRE(logging);
    ParameterSlot slot;
    slot.layer = "ip";
    slot.shape = Shape({static_cast<std::int64_t>(count)});
    layout.add(slot);
    REQUIRE(layout.element_count() >= static_cast<std::int64_t>(count));
    elements = static_cast<std::size_t>(layout.element_count());
    parameters = count;
    start = from != nullptr ? from->weights : padded(random_floats(count, 1.0F, 1));
    FixtureSolver::fill(solver);
    Checkpoint begin;
    if (from != nullptr) begin = *from;
    begin.weights = start;
    const auto backend = [] { return Result<std::unique_ptr<Backend>>(test::make_backend(0)); };
    const PartSetup setup{.clip = {},
                          .config = config,
                          .layout = layout,
                          .solver = solver,
                          .store = std::dynamic_pointer_cast<ParameterStore>(store),
                          .make_backend = backend};
    auto made = desk ? make_joined_merger(setup, begin, desk)
                     : make_merger(config, layout, solver, begin, store, backend);
    require(made);
    merger = std::move(*made);
    first = Version{begin.version.value + 1};
    enter_or_fail(0);
  }

  // Elements behind the last parameter are zero everywhere.
  std::vector<float> padded(std::vector<float> values) const {
    values.resize(elements, 0.0F);
    return values;
  }

  RecordInfo info(std::uint64_t worker, std::uint64_t run) const {
    RecordInfo info;
    info.model = layout.digest();
    info.version = run;
    info.worker = worker;
    return info;
  }

  std::vector<float> contribute(std::uint64_t worker, std::uint64_t run, float range) {
    const auto values = padded(random_floats(parameters, range, 1000 * worker + run));
    put_contribution(worker, info(worker, run), values);
    return values;
  }

  void put_contribution(std::uint64_t worker, const RecordInfo& record,
                        const std::vector<float>& values) {
    require(put(*store, contribution_key(0, worker), record,
                values.size() < elements ? padded(values) : values));
  }

  // Changes a byte in the middle of what a worker has put. Requires: the store in memory.
  void damage_contribution(std::uint64_t worker) {
    auto value = std::make_shared<KvOperation>();
    value->key = "speedo:{m}:" + contribution_key(0, worker) + ":s0:c3";
    require(execute(*map, value));
    value->text[value->text.size() / 2] ^= 1;
    overwrite(value->key, value->text);
  }

  // What another program does that writes under a key of the job.
  void overwrite(const std::string& key, const std::string& bytes) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kSet;
    operation->key = key;
    operation->head = bytes;
    require(execute(*map, operation));
  }

  MergeJob job(const Runs& runs, bool mean, std::uint64_t iteration = 0) const {
    MergeJob command{};
    command.iteration = iteration;
    command.mean = mean;
    command.stage = stage;
    command.state = state;
    command.lr_scale = lr_scale;
    command.waits_for_lost = waits_for_lost;
    for (const auto& [worker, run] : runs) {
      const auto found = shares.find(worker);
      const float share = found == shares.end() ? 1.0F : found->second;
      command.contributions.push_back({WorkerId{worker}, RunId{run}, weight * share, share});
    }
    return command;
  }

  Result<MergeResult> merge(const Runs& runs, bool mean, std::uint64_t iteration = 0) {
    std::promise<Result<MergeResult>> done;
    merger->merge(job(runs, mean, iteration),
                  [&](Result<MergeResult> result) { done.set_value(std::move(result)); });
    return done.get_future().get();
  }

  MergeResult merge_or_fail(const Runs& runs, bool mean, std::uint64_t iteration = 0) {
    auto result = merge(runs, mean, iteration);
    require(result);
    return *result;
  }

  Result<Version> enter(std::uint32_t next, const std::string& state_text = {}) {
    std::promise<Result<Version>> done;
    merger->enter_stage(next, state_text,
                        [&](Result<Version> result) { done.set_value(std::move(result)); });
    return done.get_future().get();
  }

  void enter_or_fail(std::uint32_t next, const std::string& state_text = {}) {
    require(enter(next, state_text));
    stage = next;
  }

  Merger::Copy copy() {
    std::promise<Result<Merger::Copy>> done;
    merger->copy([&](Result<Merger::Copy> copy) { done.set_value(std::move(copy)); });
    auto copy = done.get_future().get();
    require(copy);
    return std::move(*copy);
  }

  // The version after so many merges and entered stages since the fixture was made.
  Version after(std::uint64_t steps) const { return Version{first.value + steps}; }

  // What a worker would read now, after so many steps. `histories`: that the record holds.
  std::vector<float> stored(std::uint64_t steps, std::size_t histories = 0,
                            const std::string& key = weights_key()) {
    std::vector<float> values(elements * (1 + histories));
    const auto found = get(*store, key, layout.digest(), values);
    require(found);
    REQUIRE(found->version == after(steps).value);
    return values;
  }

  ParameterLayout layout;
  std::size_t elements = 0, parameters = 0;
  caffe::SolverParameter solver;
  std::shared_ptr<MemoryKeyValue> map = std::make_shared<MemoryKeyValue>();
  std::shared_ptr<RecordStore> store;
  std::vector<float> start;
  Version first;  // published before the first merge
  // Of the next jobs.
  float weight = 1.0F, lr_scale = 1.0F;
  bool waits_for_lost = false;
  std::map<std::uint64_t, float> shares;  // of workers; 1 without
  std::uint32_t stage = 0;
  std::string state;
  std::unique_ptr<Merger> merger;
};

}  // namespace speedo::test
