#include "sim/proof/proof_worker.hpp"

#include <utility>

#include "store/chunked_store.hpp"

namespace speedo::sim {
namespace {

constexpr std::chrono::seconds kStoreTimeout{600};  // the programs' default

}  // namespace

ProofWorker::ProofWorker(Setting setting) : setting_(std::move(setting)), random_(setting_.seed) {
  compute_.batch_time = Instant{static_cast<Instant::rep>(
      static_cast<double>(setting_.scenario.run_time.count()) * setting_.slowness)};
  compute_.on_spoilt = [this] {
    if (setting_.on_spoilt && run_) setting_.on_spoilt(*run_, spoiler_);
  };
  compute_.on_weights = [this](const std::vector<float>& weights) {
    const auto order = std::exchange(beginning_, std::nullopt);
    if (setting_.on_begin && order) setting_.on_begin(term_, *order, weights);
  };
}

ProofWorker::~ProofWorker() { unwind(); }

void ProofWorker::unwind() {
  if (!platform_) return;
  node_->process().kill();
  platform_->unwind();
  job_.reset();
}

TrainerParts ProofWorker::parts() {
  TrainerParts parts;
  parts.platform = platform_.get();
  parts.shares_memory = setting_.find_door != nullptr;
  parts.ahead_bytes_min = 0;
  parts.make_learner = [this](const LearnerOptions&) -> Result<std::unique_ptr<Learner>> {
    SPEEDO_ASSIGN(auto backend, setting_.make_backend());
    return QuadraticLearner::create({.platform = *platform_,
                                     .problem = setting_.problem,
                                     .state = compute_,
                                     .seed = random_.next(),
                                     .shares_memory = setting_.find_door != nullptr},
                                    std::move(backend));
  };
  return parts;
}

void ProofWorker::attach(EventQueue& queue, WorkerNode& node, const std::string& name) {
  node_ = &node;
  platform_ = std::make_unique<ProcessPlatform>(
      queue, node.process(), ProcessPlatform::Setting{.name = name, .seed = random_.next()});
  clients_ = std::make_unique<StoreClients>(setting_.servers, *platform_, random_,
                                            setting_.scenario.exchange_time);
  const auto open_store = [this](const StoreAddress&, const std::string& job) {
    return Result<std::shared_ptr<ParameterStore>>(
        std::make_shared<ChunkedStore>(clients_->map(), job));
  };
  job_ = std::make_unique<JobWorker>(
      make_trainer(parts()), open_store,
      JobWorker::Options{.store_override = {},
                         .store_timeout = kStoreTimeout,
                         .platform = platform_.get(),
                         .find_door = setting_.find_door});
}

void ProofWorker::prepare(const WelcomeMessage& welcome,
                          std::function<void(Result<Digest>)> done) {
  term_ = welcome.term;
  worker_ = welcome.worker;
  job_->prepare(welcome, [this, done = std::move(done)](Result<Digest> model) {
    if (model) tell_withdrawn();
    done(std::move(model));
  });
}

// A preparation that succeeds is done after all that was ordered before.
void ProofWorker::tell_withdrawn() {
  for (const Withdrawal& each : std::exchange(withdrawals_, {})) {
    const bool was_answered = clients_->failures() == each.failures;
    if (was_answered && setting_.on_withdrawn) setting_.on_withdrawn(each.key);
  }
}

void ProofWorker::run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) {
  run_ = order.run;
  beginning_ = order;
  job_->run(order, [this, run = order.run, key = contribution_key(term_, worker_),
                    done = std::move(done)](Result<RunReport> report) {
    if (run_ == run) run_.reset();
    if (report && setting_.on_trained) setting_.on_trained(key, run);
    done(std::move(report));
  });
}

void ProofWorker::save_state(const SaveStateMessage& order,
                             std::function<void(Result<void>)> done) {
  job_->save_state(order, std::move(done));
}

void ProofWorker::look_for_end(std::uint64_t term, std::function<void(bool)> done) {
  job_->look_for_end(term, std::move(done));
}

void ProofWorker::cancel() {
  run_.reset();
  beginning_.reset();
  job_->cancel();
}

void ProofWorker::withdraw() {
  run_.reset();
  beginning_.reset();
  withdrawals_.push_back({contribution_key(term_, worker_), clients_->failures()});
  job_->withdraw();
}

void ProofWorker::stall_until(Instant end, const FaultMark& mark) {
  compute_.stalled_until = end;
  compute_.stall = mark;
}

void ProofWorker::spoil_next(bool only_contribution, const FaultMark& mark) {
  compute_.spoilt =
      only_contribution ? ComputeState::Spoilt::kContribution : ComputeState::Spoilt::kLoss;
  spoiler_ = mark;
}

std::uint64_t ProofWorker::progress() const {
  return job_->progress() + compute_.progress_at(node_->process().now());
}

}  // namespace speedo::sim
