#include "sim/proof/proof_master.hpp"

#include <utility>

#include <speedo/base/limits.hpp>

#include "checkpoint/training_file.hpp"
#include "core/prototxt.hpp"
#include "sim/proof/quadratic_nets.hpp"
#include "store/chunked_store.hpp"
#include "store/record_codec.hpp"
#include "store/shared/memory_exchange.hpp"

namespace speedo::sim {
namespace {

// A process needs a moment to start.
constexpr Instant kStartTime = std::chrono::milliseconds(50);
constexpr int kSeed = 1;  // of the solver: nothing is drawn from it

constexpr RotationRules kRotation{.keep = 2};

// The solver of the problem: its rule is used, and where its snapshots go.
caffe::SolverParameter proof_solver(const Scenario& scenario) {
  caffe::SolverParameter solver;
  solver.set_base_lr(scenario.learning_rate);
  solver.set_lr_policy("fixed");
  solver.set_momentum(scenario.momentum);
  solver.set_weight_decay(0.0F);
  solver.set_random_seed(kSeed);
  solver.set_snapshot_prefix(kSnapshotPrefix);
  return solver;
}

// The cluster lets in who comes.
class ProofDoor : public MemoryDoor {
 public:
  explicit ProofDoor(std::string address) : address_(std::move(address)) {}
  const std::string& address() const override { return address_; }

 private:
  const std::string address_;
};

}  // namespace

ProofMaster::ProofMaster(Setting setting, World& world)
    : setting_(std::move(setting)),
      world_(world),
      node_(world.start_master()),
      random_(setting_.seed),
      platform_(world.queue(), node_.process(),
                {.name = setting_.name, .seed = random_.next(), .is_dead = setting_.is_dead}),
      clients_(setting_.servers, platform_, random_, setting_.scenario.merge_time),
      files_(setting_.disk, &platform_),
      config_(setting_.scenario.config) {
  clients_.on_executed = [this](std::size_t server, const KvOperation& each) {
    setting_.on_executed(*this, server, each);
  };
  clients_.on_read = [this] { setting_.on_read(*this); };
}

ProofMaster::~ProofMaster() { unwind(); }

void ProofMaster::unwind() {
  node_.process().kill();
  platform_.unwind();
  main_.reset();
}

void ProofMaster::start() {
  main_ = platform_.start_thread("main", [this] {
    platform_.sleep(Instant{static_cast<Instant::rep>(
        static_cast<float>(kStartTime.count()) * random_.uniform(0.5F, 1.5F))});
    live();
  });
}

MasterOptions ProofMaster::options() {
  MasterOptions options;
  options.session = config_;
  options.job = config_.job;
  options.store = config_.store;
  options.merger.publish_interval = setting_.scenario.publish_interval;
  options.merger.threads = 1;
  options.merger.ahead_bytes_min = 0;
  options.merger.in_parts = !setting_.scenario.has_shard.empty();
  options.merger.part_copies =
      setting_.scenario.shard_copies && setting_.scenario.has_weights_in_parts();
  options.spec.solver_text = to_prototxt(proof_solver(setting_.scenario));
  options.make_strategy = setting_.make_strategy;
  return options;
}

// With --resume=auto, once a training has begun.
void ProofMaster::choose_files(MasterOptions& options) {
  const std::filesystem::path note = training_file(kSnapshotPrefix, options.job);
  if (!setting_.disk.files().contains(note)) return;
  options.resume = MasterOptions::Resume::kNewest;
  ChunkedStore store(clients_.map(), options.job);
  const auto stored = training_in(store);
  const CheckpointOwner owner{options.job, setting_.problem.layout().digest()};
  files_.look_for_start(true);
  auto saved = newest_of_job(kSnapshotPrefix, owner, stored, files_);
  files_.look_for_start(false);
  chosen_files_ = setting_.on_files(stored, saved);
  if (setting_.starts_anew && !saved) options.resume = MasterOptions::Resume::kNo;
  go_on_from_instead(std::move(saved), this->options(), options);
}

TrainerParts ProofMaster::parts() {
  TrainerParts parts;
  parts.platform = &platform_;
  parts.make_backend = setting_.make_backend;
  if (setting_.open_door) {
    parts.open_door = [this](std::shared_ptr<SharedStore> store, std::uint64_t term)
        -> Result<std::unique_ptr<MemoryDoor>> {
      return std::unique_ptr<MemoryDoor>(
          std::make_unique<ProofDoor>(setting_.open_door(*this, std::move(store), term)));
    };
  }
  parts.make_job_nets = [this](const JobNetsOptions& options) {
    return QuadraticNets::create(platform_, setting_.problem, options);
  };
  parts.watch_merger = [this](std::unique_ptr<Merger> merger) -> std::unique_ptr<Merger> {
    Answer<Merger::Copy> start(platform_);
    merger->copy([&](Result<Merger::Copy> copy) { start.set(std::move(*copy)); });
    const Merger::Copy copy = start.wait();
    weights_ = copy.weights;
    setting_.on_start(*this, copy);
    if (setting_.scenario.has_weights_in_parts()) {
      return std::make_unique<WatchedParts>(std::move(merger), watch_parts());
    }
    return std::make_unique<WatchedMerger>(std::move(merger), watch());
  };
  return parts;
}

MergeWatch ProofMaster::watch() {
  MergeWatch watch;
  watch.on_begin = [this](const master_command::StartMerge* job) { begin_publishing(job); };
  watch.on_merged = [this](const master_command::StartMerge& job, const MergeResult& result,
                           const Merger::Copy& copy) {
    weights_ = copy.weights;
    publishing_ = false;
    setting_.on_merged(*this, job, result, copy);
  };
  watch.on_stage = [this](const Merger::Copy& copy) {
    weights_ = copy.weights;
    publishing_ = false;
    setting_.on_stage(*this, copy);
  };
  watch.on_failed = [this] {
    setting_.on_torn(*this);
    publishing_ = false;
  };
  return watch;
}

PartsWatch ProofMaster::watch_parts() {
  PartsWatch watch;
  watch.on_begin = [this](const master_command::StartMerge* job) { begin_publishing(job); };
  watch.on_merged = [this](const master_command::StartMerge& job, const MergeResult& result) {
    merged_by_parts(&job, result);
  };
  watch.on_stage = [this](Version version) { merged_by_parts(nullptr, {.version = version}); };
  watch.on_failed = [this] {
    setting_.on_torn(*this);
    publishing_ = false;
  };
  return watch;
}

// `job`: null for a stage.
void ProofMaster::merged_by_parts(const master_command::StartMerge* job,
                                  const MergeResult& result) {
  const auto now = setting_.read_published(*this, result.version);
  publishing_ = false;
  if (!now) return setting_.on_unseen(*this, job, result);
  weights_ = now->weights;
  if (job == nullptr) return setting_.on_stage(*this, *now);
  setting_.on_merged(*this, *job, result, *now);
}

void ProofMaster::strike_at_manifest(const FaultMark& mark, std::function<void()> strike) {
  clients_.strike_at_set(RecordKeys(config_.job, weights_key()).manifest(),
                         [this, mark, strike = std::move(strike)](const KvOperation&) {
                           mark.struck();
                           if (is_merging()) mark.felt();
                           strike();
                         });
}

void ProofMaster::begin_publishing(const master_command::StartMerge* job) {
  publishing_ = true;
  order_.reset();
  if (job == nullptr) return;
  order_ = *job;
  if (!strike_) return;
  const MergeStrike strike = *std::exchange(strike_, std::nullopt);
  clients_.strike_at_operation(strike.operation, [this, strike](const KvOperation&) {
    strike.mark.struck();
    if (is_merging()) strike.mark.felt();
    if (strike.stands_still) {
      setting_.stand_still(*this, *strike.stands_still);
    } else {
      setting_.die(*this);
    }
  });
}

void ProofMaster::cancel_strike() {
  strike_.reset();
  clients_.cancel_strike();
  files_.cancel_strike();
}

MasterHooks ProofMaster::hooks(CheckpointWriter& checkpoints) {
  MasterHooks hooks;
  hooks.choose_files = [this](MasterOptions& options) { choose_files(options); };
  hooks.on_training = [&checkpoints](const TrainingId& training, bool, std::uint64_t) {
    return checkpoints.begin(training);
  };
  hooks.snapshot = [this, &checkpoints](const SnapshotParts& parts) -> Result<void> {
    SPEEDO_TRY(checkpoints.write(parts));
    setting_.on_written(parts.session);
    return {};
  };
  return hooks;
}

void ProofMaster::strike_in_files(std::uint64_t change, bool with_effect, const FaultMark& mark) {
  files_.strike_at_change({change, with_effect, [this, mark] {
                             mark.struck();
                             mark.felt();
                             setting_.die(*this);
                           }});
}

void ProofMaster::live() {
  CheckpointWriter checkpoints(proof_solver(setting_.scenario), config_.job, kRotation, files_);
  const MasterHooks hooks = this->hooks(checkpoints);
  const TrainerParts parts = this->parts();
  const OpenStore open_store = [this](const StoreAddress&, const std::string& job) {
    return Result<std::shared_ptr<ParameterStore>>(
        std::make_shared<ChunkedStore>(clients_.map(), job));
  };
  const auto lost = [this](Error error) {
    node_.soon(master_event::StoreLost{std::move(error)});
  };
  const auto train = [&]() -> std::optional<Error> {
    MasterOptions chosen = this->options();
    choose_files(chosen);
    auto options = complete(chosen);
    if (!options) return options.error();
    auto run = MasterRun::prepare(
        std::move(*options),
        {.hooks = hooks, .parts = parts, .open_store = open_store, .lost = lost});
    if (!run) return run.error();
    return lead(*run);
  };
  end(train());
}

// From the first word with the workers to the last; what run_master() does with an actor.
std::optional<Error> ProofMaster::lead(MasterRun& run) {
  Answer<std::optional<Error>> finished(platform_);
  node_.on_finish = [&] { finished.set(node_.failure()); };
  node_.process().soon([this, &run] { node_.begin(run.session(), run.job()); });
  const std::optional<Error> error = finished.wait();
  const MasterProgress& at = run.session().progress();
  const bool in_rounds =
      find_strategy(config_.stages[at.stage].strategy.name)->rounds || at.stage_start == 0;
  const bool is_settled =
      in_rounds || at.iteration - at.stage_start >= 2 * setting_.scenario.workers;
  end_state_ = {at.iteration, run.session().save(), weights_, is_settled};
  platform_.sleep(kFarewellTimeout);
  run.end(error, false);
  return error;
}

void ProofMaster::end(std::optional<Error> error) {
  ended_ = true;
  end_error_ = std::move(error);
  world_.kill(node_, false);
  setting_.on_end(*this, end_error_);
}

}  // namespace speedo::sim
