#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"

#include "actors/node_actors.hpp"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "train/trainer_cluster.hpp"

namespace speedo::test {

inline constexpr const char* kSolver = R"(
    base_lr: 0.1 lr_policy: "inv" gamma: 0.01 power: 0.75 momentum: 0.9 weight_decay: 0.002
    max_iter: 100 random_seed: 5 display: 0 )";

// Keys of what workers and masters of "job" have handed each other.
inline std::vector<std::string> handed_over_in(KeyValue& map) {
  const std::string prefix = job_prefix("job");
  std::vector<std::string> keys = value_of(map.list(prefix));
  std::erase_if(keys, [&](const std::string& key) {
    return !is_handed_over(std::string_view(key).substr(prefix.size()));
  });
  return keys;
}

// A request to stop that a test gives.
class StopSwitch {
 public:
  void set() { on_ = true; }
  std::optional<std::string> poll() {
    polls_ += 1;
    return on_ ? std::optional<std::string>("asked to") : std::nullopt;
  }
  // How often somebody looked: each look is a tick of an actor that lives.
  int polls() const { return polls_; }

 private:
  std::atomic<bool> on_{false};
  std::atomic<int> polls_{0};
};

// A job on a memory of its own: one master, any number of workers, all in this process.
struct NodeCluster {
  NodeCluster() {
    options.spec = {.solver_text = generated_solver(16, kSolver, true), .base = {}};
    options.session.max_iteration = 30;
    options.store = StoreAddress("memory");
    options.job = "job";
    hooks.on_listening = [this](const std::string& text) { address.set_value(text); };
    hooks.poll_stop = [this] { return master_stop.poll(); };
    hooks.on_progress = [this](const MasterProgress& progress, const std::vector<TestScores>*) {
      first_iteration = std::min<std::uint64_t>(first_iteration, progress.iteration);
      iteration = progress.iteration;
      alive = progress.workers_alive;
    };
    hooks.snapshot = [this](const SnapshotParts& snapshot) -> Result<void> {
      const std::lock_guard lock(mutex);
      snapshots.push_back(snapshot.iteration);
      last_model = snapshot.model;
      last_state = snapshot.state;
      last_session = snapshot.session;
      return {};
    };
  }

  std::future<Result<MasterProgress>> start_master() {
    return start_master_with(open_store(), cpu_parts());
  }
  std::future<Result<MasterProgress>> start_master_with(OpenStore open_with,
                                                        TrainerParts parts) {
    return std::async(std::launch::async, [=, this] {
      return run_master_seen({options, hooks, parts, open_with, gate},
                             [this](const caf::actor& actor) {
                               const std::lock_guard lock(mutex);
                               master_actor = actor.address();
                             });
    });
  }
  // Makes the master's actor exit, as nobody outside its process can. Requires: it lives.
  void end_master(const caf::error& reason) {
    const std::lock_guard lock(mutex);
    const auto actor = caf::actor_cast<caf::actor>(master_actor);
    REQUIRE(actor);
    caf::anon_send(actor, caf::exit_msg{actor.address(), reason});
  }
  std::future<Result<void>> start_worker(const std::string& master, std::uint64_t count = 1,
                                         StopSwitch* stop = nullptr, OpenStore open_with = {}) {
    return std::async(std::launch::async, [=, this] {
      const WorkerOptions worker{.master = master,
                                 .store_override = {},
                                 .count = count,
                                 .name_prefix = "test",
                                 .session = {.name = {}, .device = "cpu", .master = {}},
                                 .gate = gate.files};
      const WorkerHooks worker_hooks{
          .poll_stop = [stop]() { return stop ? stop->poll() : std::nullopt; }};
      return run_worker(worker, worker_hooks, cpu_parts(), open_with ? open_with : open_store());
    });
  }
  // Each has a store of its own: what a master writes is fenced.
  std::shared_ptr<ParameterStore> open() const {
    return std::make_shared<ChunkedStore>(memory, "job");
  }
  OpenStore open_store() {
    return [this](const StoreAddress&, const std::string&)
               -> Result<std::shared_ptr<ParameterStore>> { return open(); };
  }
  Schedule& schedule() { return options.session.stages.front(); }
  // Of the weights in the store; 0 if there are none.
  std::uint64_t stored_version() const {
    const auto weights = open()->read(weights_key());
    return weights ? (*weights)->info().version : 0;
  }
  std::string master_address() { return address.get_future().get(); }

  // The end of its patience guards against hanging.
  template <class Done>
  bool wait_for(Done done) {
    for (int i = 0; i < 20000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return done();
  }

  MasterOptions options;
  MasterHooks hooks;
  MasterGate gate;  // of workers, too
  StopSwitch master_stop;
  std::promise<std::string> address;
  std::shared_ptr<MemoryKeyValue> memory = std::make_shared<MemoryKeyValue>();
  std::atomic<std::uint64_t> first_iteration{UINT64_MAX}, iteration{0}, alive{0};
  std::mutex mutex;
  caf::actor_addr master_actor;  // guarded by mutex
  std::vector<std::int64_t> snapshots;
  caffe::NetParameter last_model;
  caffe::SolverState last_state;
  std::string last_session;
};

inline std::vector<float> weights_of(const caffe::NetParameter& model) {
  std::vector<float> weights;
  for (const auto& layer : model.layer()) {
    for (const auto& blob : layer.blobs()) {
      weights.insert(weights.end(), blob.data().begin(), blob.data().end());
    }
  }
  return weights;
}

// The learnable values without the arena's padding, which is zero.
inline std::vector<float> without_zeros(std::vector<float> weights) {
  std::erase(weights, 0.0F);
  return weights;
}

}  // namespace speedo::test
