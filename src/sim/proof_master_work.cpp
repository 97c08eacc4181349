// What a master process does beside deciding. The engine's calls block in reality; here they take
// no time themselves, unless a fault makes the process stand still within one.

#include <utility>

#include <speedo/base/limits.hpp>

#include "sim/proof_master.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kGuardInterval = std::chrono::seconds(1);
constexpr Instant kTestTime = std::chrono::milliseconds(200);
constexpr Instant kSnapshotTime = std::chrono::milliseconds(20);

}  // namespace

void ProofMaster::with_engine(Step step) {
  engine_steps_.push_back(std::move(step));
  if (engine_busy_) return;
  engine_busy_ = true;
  while (!engine_steps_.empty() && node_.process().alive()) {
    const Step next = std::move(engine_steps_.front());
    engine_steps_.pop_front();
    next();
  }
  engine_busy_ = false;
}

void ProofMaster::merge(master_command::StartMerge job,
                        std::function<void(Result<MergeResult>)> done) {
  node_.process().after(draw(setting_.scenario.merge_time), [=, this, job = std::move(job)] {
    when_reachable(
        0, [=, this] { with_engine([=, this] { merge_now(job, done); }); },
        [done](Error error) { done(std::move(error)); });
  });
}

void ProofMaster::merge_now(const master_command::StartMerge& job,
                            const std::function<void(Result<MergeResult>)>& done) {
  if (strike_) {
    const MergeStrike strike = *std::exchange(strike_, std::nullopt);
    client_->strike_at_operation(strike.operation, [this, strike](const KvOperation&) {
      strike.mark.struck();
      const bool merging = is_merging();
      // Others may go on from what it has just published.
      if (engine_busy_) setting_.on_torn(*this, merging_);
      const bool stood = strike.stands_still && setting_.stand_still(*this, *strike.stands_still);
      if (merging && (stood || !strike.stands_still)) strike.mark.felt();
      if (!strike.stands_still) setting_.die(*this);
    });
  }
  merging_ = &job;
  auto result = engine_->merge(job);
  merging_ = nullptr;
  if (!result) setting_.on_torn(*this, &job);
  if (!node_.process().alive()) return;
  if (result) {
    last_was_stage_ = false;
    last_merge_ = job;
    last_result_ = *result;
    setting_.on_merged(*this);
  }
  node_.process().soon([done, result] { done(result); });
  engine_->write_checkpoint(false);
}

void ProofMaster::cancel_strike() {
  strike_.reset();
  client_->cancel_strike();
}

void ProofMaster::enter_stage(master_command::EnterStage stage,
                              std::function<void(Result<Version>)> done) {
  node_.process().after(draw(setting_.scenario.merge_time), [=, this, stage = std::move(stage)] {
    when_reachable(
        0,
        [=, this] {
          with_engine([=, this] {
            const auto version = engine_->enter_stage(stage.stage, stage.state);
            if (!version) setting_.on_torn(*this, nullptr);
            if (!node_.process().alive()) return;
            last_was_stage_ = true;
            if (version) setting_.on_merged(*this);
            node_.process().soon([=] { done(version); });
          });
        },
        [done](Error error) { done(std::move(error)); });
  });
}

void ProofMaster::test(std::uint64_t, std::function<void(Result<Score>)> done) {
  with_engine([=, this] {
    const auto distance = static_cast<float>(setting_.problem.distance(engine_->copy().weights));
    const Score score{1.0F / (1.0F + distance), distance};
    node_.process().after(draw(kTestTime), [done, score] { done(score); });
  });
}

// The file's new content is there at the end of the writing, or not at all.
void ProofMaster::snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) {
  with_engine([=, this] {
    const auto copy = std::make_shared<const Merger::Copy>(engine_->copy());
    node_.process().after(draw(kSnapshotTime), [=, this] {
      setting_.files.iteration = iteration;
      setting_.files.newest =
          Checkpoint{copy->version, copy->weights, copy->histories, copy->state};
      done(Result<void>{});
    });
  });
}

// Late, as by a thread of its own; not at all if the store is out of reach just then.
void ProofMaster::erase_worker(WorkerId worker) {
  node_.process().after(draw(setting_.scenario.merge_time), [this, worker] {
    if (!client_->reachable()) return;
    // With histories a contribution is twice as long.
    store_->erase(contribution_key(claim_.epoch, worker.value), 2 * setting_.problem.size())
        .ignore("the record expires");
    if (!node_.process().alive()) return;
    store_->erase(local_key(claim_.epoch, worker.value)).ignore("the record expires");
  });
}

// The job's text; a store that does not answer for long ends training.
void ProofMaster::watch() {
  node_.process().after(kJobWatchInterval, [this] {
    if (node_.finished()) return;
    when_reachable(
        0,
        [this] {
          const auto job = store_->get_blob(job_key());
          if (!job && !is_transient(job.error().code)) {
            store_->put_blob(job_key(), config_.job).ignore("the next watch tries again");
          }
          if (node_.process().alive()) watch();
        },
        [this](Error error) { node_.take(master_event::StoreLost{std::move(error)}); });
  });
}

void ProofMaster::guard_weights() {
  node_.process().after(kGuardInterval, [this] {
    if (node_.finished()) return;
    if (client_->reachable()) with_engine([this] { engine_->restore_lost_weights(); });
    if (node_.process().alive()) guard_weights();
  });
}

}  // namespace speedo::sim
