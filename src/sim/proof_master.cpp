#include "sim/proof_master.hpp"

#include <utility>

#include <speedo/base/limits.hpp>

#include "core/prototxt.hpp"
#include "sim/quadratic_nets.hpp"
#include "store/chunked_store.hpp"

namespace speedo::sim {
namespace {

// A process needs a moment to start.
constexpr Instant kStartTime = std::chrono::milliseconds(50);
constexpr int kSeed = 1;  // of the solver: nothing is drawn from it

// The solver of the problem: only its rule is used.
std::string solver_text(const Scenario& scenario) {
  caffe::SolverParameter solver;
  solver.set_base_lr(scenario.learning_rate);
  solver.set_lr_policy("fixed");
  solver.set_momentum(scenario.momentum);
  solver.set_weight_decay(0.0F);
  solver.set_random_seed(kSeed);
  return to_prototxt(solver);
}

}  // namespace

ProofMaster::ProofMaster(Setting setting, World& world)
    : setting_(std::move(setting)),
      world_(world),
      node_(world.start_master()),
      random_(setting_.seed),
      platform_(world.queue(), node_.process(),
                {.name = setting_.name, .seed = random_.next(), .is_dead = setting_.is_dead}),
      client_(std::make_shared<StoreClient>(setting_.server, platform_, random_.next(),
                                            setting_.scenario.merge_time)),
      config_(setting_.scenario.config) {
  client_->on_executed = [this](const KvOperation& each) { setting_.on_executed(*this, each); };
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
  options.spec.solver_text = solver_text(setting_.scenario);
  options.make_strategy = setting_.make_strategy;
  const SnapshotFiles& files = setting_.files;
  if (!files.training) return options;
  options.resume = MasterOptions::Resume::kNewest;
  if (!files.newest) return options;
  options.session.training = files.newest->training;
  options.session.start_iteration = files.newest->iteration;
  options.initial_session = files.newest->session;
  options.initial_weights = files.newest->model;
  options.initial_state = files.newest->state;
  return options;
}

TrainerParts ProofMaster::parts() {
  TrainerParts parts;
  parts.platform = &platform_;
  parts.make_backend = setting_.make_backend;
  parts.make_job_nets = [this](const JobNetsOptions& options) {
    return QuadraticNets::create(platform_, setting_.problem, options);
  };
  parts.watch_merger = [this](std::unique_ptr<Merger> merger) -> std::unique_ptr<Merger> {
    Answer<Merger::Copy> start(platform_);
    merger->copy([&](Merger::Copy copy) { start.set(std::move(copy)); });
    setting_.on_start(*this, start.wait());
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

void ProofMaster::begin_publishing(const master_command::StartMerge* job) {
  publishing_ = true;
  order_.reset();
  if (job == nullptr) return;
  order_ = *job;
  if (!strike_) return;
  const MergeStrike strike = *std::exchange(strike_, std::nullopt);
  client_->strike_at_operation(strike.operation, [this, strike](const KvOperation&) {
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
  client_->cancel_strike();
}

MasterHooks ProofMaster::hooks() {
  MasterHooks hooks;
  hooks.on_training = [this](const TrainingId& training, bool is_new) -> Result<void> {
    if (is_new) setting_.files.training = training;
    setting_.on_chosen(*this);
    return {};
  };
  // The files' new content is there at the end of the writing, or not at all.
  hooks.snapshot = [this](const SnapshotParts& parts) -> Result<void> {
    SPEEDO_ASSIGN(const MasterSession::Origin origin, MasterSession::origin_of(parts.session));
    setting_.files.newest = SnapshotFiles::Snapshot{
        .training = origin.training,
        .iteration = static_cast<std::uint64_t>(parts.iteration),
        .session = parts.session,
        .model = std::make_shared<caffe::NetParameter>(parts.model),
        .state = std::make_shared<caffe::SolverState>(parts.state)};
    return {};
  };
  return hooks;
}

void ProofMaster::live() {
  const MasterHooks hooks = this->hooks();
  const TrainerParts parts = this->parts();
  const OpenStore open_store = [this](const StoreAddress&, const std::string& job) {
    return Result<std::shared_ptr<ParameterStore>>(std::make_shared<ChunkedStore>(client_, job));
  };
  const auto lost = [this](Error error) {
    node_.soon(master_event::StoreLost{std::move(error)});
  };
  const auto train = [&]() -> std::optional<Error> {
    auto options = complete(this->options());
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
  end_state_ = {run.session().progress().iteration, run.session().save(), weights_};
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
