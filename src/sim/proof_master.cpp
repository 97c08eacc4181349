// A master process in virtual time: claim, start, lease, the end. Its work is in
// proof_master_work.cpp.

#include "sim/proof_master.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/limits.hpp>
#include <speedo/train/job_end.hpp>

#include "store/chunked_store.hpp"

namespace speedo::sim {
namespace {

// Virtual time begins here for epochs: those of restarted masters are above any number of a test.
constexpr std::uint64_t kWallClockStart = 1'700'000'000'000'000;
// A master that is done stays for its last messages.
constexpr Instant kFarewell = kFarewellTimeout;
// The solver of the problem: only its rule is used, by gradient-only stages.
caffe::SolverParameter solver_of(const Scenario& scenario) {
  caffe::SolverParameter solver;
  solver.set_base_lr(scenario.learning_rate);
  solver.set_lr_policy("fixed");
  solver.set_momentum(scenario.momentum);
  solver.set_weight_decay(0.0F);
  return solver;
}

}  // namespace

ProofMaster::ProofMaster(Setting setting, World& world)
    : setting_(std::move(setting)),
      world_(world),
      node_(world.start_master()),
      random_(setting_.seed),
      config_(setting_.scenario.config) {
  client_ = std::make_unique<StoreClient>(setting_.server, node_.process(), random_.next());
  std::shared_ptr<KeyValue> map(std::shared_ptr<void>(), client_.get());
  store_ = std::make_shared<ChunkedStore>(std::move(map), config_.job);
}

Instant ProofMaster::draw(Instant mean) {
  return Instant{static_cast<Instant::rep>(static_cast<float>(mean.count()) *
                                           random_.uniform(0.5F, 1.5F))};
}

void ProofMaster::start() {
  claim_.holder = setting_.holder;
  claim_.time = kLeaseTime;
  claim_.epoch_floor = kWallClockStart + static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(world_.queue().now()).count());
  node_.process().after(draw(std::chrono::milliseconds(50)), [this] { claim(std::nullopt); });
}

void ProofMaster::when_reachable(int attempt, Step go, std::function<void(Error)> fail) {
  if (client_->reachable()) return go();
  if (attempt >= kStoreAttemptsMax) {
    return fail({ErrorCode::kUnavailable, "the store does not answer"});
  }
  const Instant wait = std::min<Instant>(kStoreBackoffFirst * (1 << attempt), kStoreBackoffMax);
  node_.process().after(wait, [=, this, go = std::move(go), fail = std::move(fail)] {
    when_reachable(attempt + 1, go, fail);
  });
}

// `held`: the answer before, if another master has the job.
void ProofMaster::claim(std::optional<ClaimAnswer> held) {
  when_reachable(
      0,
      [this, held] {
        claim_.dead_holder = held && setting_.is_dead(held->holder) ? held->holder : "";
        const auto answer = store_->claim_master(claim_);
        if (!node_.process().alive()) return;
        if (!answer) return end(answer.error());
        judge_claim(*answer, held);
      },
      [this](Error error) { end(std::move(error)); });
}

void ProofMaster::judge_claim(const ClaimAnswer& answer, const std::optional<ClaimAnswer>& held) {
  if (answer.granted) {
    claim_.epoch = answer.epoch;
    setting_.on_claimed(*this);
    if (const auto begun = begin(); !begun && node_.process().alive()) end(begun.error());
    return;
  }
  setting_.on_refused(*this);
  const bool renewed = held && (answer.holder != held->holder || answer.epoch != held->epoch ||
                                answer.left > held->left);
  if (renewed) return end(Error{ErrorCode::kSuperseded, answer.holder + " holds the job"});
  const Instant wait = setting_.is_dead(answer.holder)
                           ? Instant{0}
                           : std::clamp<Instant>(answer.left, std::chrono::milliseconds(10),
                                                 kTickInterval);
  node_.process().after(wait, [this, answer] { claim(answer); });
}

// What the store has, or the snapshot files, whichever is further; else the start.
Result<Checkpoint> ProofMaster::find_start() {
  auto stored = read_checkpoint(*store_, setting_.problem.layout(),
                                wants_histories(updates_of(config_.stages)));
  if (!stored && is_transient(stored.error().code)) return stored.error();
  std::uint64_t iteration = 0;
  if (stored && !stored->session.empty()) {
    MasterSession session(config_, setting_.make_strategy);
    SPEEDO_TRY(session.restore(stored->session));
    iteration = session.progress().iteration;
  }
  const bool has_files = setting_.files.newest.has_value();
  const bool from_store = stored && (!has_files || iteration >= setting_.files.iteration);
  if (from_store) {
    SPEEDO_TRY(store_->clear_contributions());
    return stored;
  }
  SPEEDO_TRY(store_->clear());
  if (has_files) return *setting_.files.newest;
  return Checkpoint{Version{0}, setting_.problem.start(), {}, {}};
}

Result<void> ProofMaster::begin() {
  store_->fence(claim_.epoch);
  config_.epoch = config_.first_run = claim_.epoch;
  config_.model = setting_.problem.layout().digest();
  SPEEDO_ASSIGN(Checkpoint start, find_start());
  config_.first_version = Version{start.version.value + 1};
  auto session = std::make_unique<MasterSession>(config_, setting_.make_strategy);
  if (!start.session.empty()) SPEEDO_TRY(session->restore(start.session));
  MergerConfig merger;
  merger.stages = updates_of(config_.stages);
  merger.publish_interval = setting_.scenario.publish_interval;
  merger.epoch = claim_.epoch;
  merger.threads = 1;
  setting_.on_start(*this, start, session->progress());
  SPEEDO_ASSIGN(engine_, MergerEngine::create(merger, setting_.problem.layout(),
                                              solver_of(setting_.scenario), std::move(start),
                                              store_, setting_.make_backend));
  const auto entered = engine_->enter_stage(session->progress().stage, session->save());
  if (!entered) {
    setting_.on_torn(*this, nullptr);
    return entered.error();
  }
  if (node_.process().alive()) setting_.on_merged(*this);
  SPEEDO_TRY(erase_job_end(*store_));
  SPEEDO_TRY(store_->put_blob(job_key(), config_.job));
  node_.on_finish = [this] {
    node_.process().after(kFarewell, [this] {
      if (client_->reachable() && !another_follows(node_.failure())) {
        put_job_end(*store_, claim_.epoch).ignore("workers look for the master for a while");
        if (!node_.process().alive()) return;
      }
      if (client_->reachable() && !node_.failure()) {
        store_->release_master(claim_).ignore("it ends by itself");
      }
      end(node_.failure());
    });
  };
  node_.begin(std::move(session), *this);
  keep_lease();
  watch();
  guard_weights();
  return {};
}

void ProofMaster::keep_lease() {
  node_.process().after(kLeaseRenewal, [this] {
    if (node_.finished()) return;
    if (client_->reachable()) {
      const auto answer = store_->claim_master(claim_);
      if (!node_.process().alive()) return;
      const bool lost = answer ? !answer->granted : answer.error().code == ErrorCode::kSuperseded;
      if (lost) {
        node_.take(master_event::StoreLost{
            {ErrorCode::kSuperseded, "another master has taken the job over"}});
        return;
      }
    }
    keep_lease();
  });
}

void ProofMaster::end(std::optional<Error> error) {
  if (ended_) return;
  ended_ = true;
  end_error_ = std::move(error);
  world_.kill(node_, false);
  setting_.on_end(*this, end_error_);
}

}  // namespace speedo::sim
