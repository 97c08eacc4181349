#include "train/job/job_master.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/train/job_end.hpp>
#include <speedo/train/schedule.hpp>

#include "base/log.hpp"
#include "train/job/job_solver.hpp"
#include "train/parts/joined_engine.hpp"
#include "train/parts/joined_steps.hpp"
#include "train/parts/part_record.hpp"
#include "train/replicas/step_header.hpp"
#include "train/session/store_absence.hpp"

namespace speedo {
namespace {

// Whether the store is to be waited for no longer, before training has begun. `waiting`: why
// something waits for it.
std::optional<Error> why_give_up(StoreAbsence& absence, const std::optional<Error>& waiting,
                                 const JobMaster::StartLimits& limits, Instant now) {
  if (const auto reason = limits.poll_stop ? limits.poll_stop() : std::nullopt) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("stopped ({}) while the first weights were being published{}{}",
                             *reason, waiting ? ": " : "", waiting ? waiting->message : "")};
  }
  if (waiting && limits.store_timeout.count() == 0) return waiting;
  if (!waiting) {
    if (absence.back(now)) SPEEDO_INFO("the store is back");
    return std::nullopt;
  }
  if (const auto line = absence.lost(*waiting, now, "at the start")) SPEEDO_WARN("{}", *line);
  if (const auto line = absence.line(now)) SPEEDO_WARN("{}", *line);
  return absence.given_up(now);
}

// Floats of a contribution, in the stage whose contributions are the longest.
Result<std::uint64_t> longest_contribution(const MergerConfig& config, const JobNets& nets) {
  const auto weights = static_cast<std::uint64_t>(nets.layout().element_count());
  std::uint64_t longest = weights;
  for (const UpdateSpec& stage : config.stages) {
    if (!averages_histories(stage)) continue;
    SPEEDO_ASSIGN(const std::size_t count,
                  UpdateRule::history_count(solver_of(nets.solver(), stage)));
    longest = std::max(longest, weights * (1 + count));
  }
  return longest;
}

}  // namespace

JobMaster::JobMaster(const MasterOptions& options, Platform& platform,
                     std::unique_ptr<JobNets> nets, Stores stores, WriteSnapshot write_snapshot)
    : platform_(platform),
      store_(std::move(stores.all)),
      shared_(std::move(stores.shared)),
      write_snapshot_(std::move(write_snapshot)),
      job_record_(encode(job_spec(options))),
      term_(options.session.term),
      snapshot_workers_(options.session.snapshot_workers),
      stages_(updates_of(options.session.stages)),
      nets_(std::move(nets)),
      erasing_(platform, "erasing"),
      housekeeping_(platform, "housekeeping") {}

Result<std::unique_ptr<JobMaster>> JobMaster::create(const MasterOptions& options,
                                                     const TrainerParts& parts,
                                                     std::unique_ptr<JobNets> nets,
                                                     Stores stores, Checkpoint start,
                                                     WriteSnapshot write_snapshot) {
  std::unique_ptr<JobMaster> master(new JobMaster(options, *parts.platform, std::move(nets),
                                                  std::move(stores), std::move(write_snapshot)));
  SPEEDO_ASSIGN(master->merger_, master->make_job_merger(options, parts, std::move(start)));
  if (parts.watch_merger) master->merger_ = parts.watch_merger(std::move(master->merger_));
  return master;
}

Result<std::unique_ptr<Merger>> JobMaster::make_job_merger(const MasterOptions& options,
                                                           const TrainerParts& parts,
                                                           Checkpoint start) {
  MergerConfig config = merger_config(options, platform_);
  config.shared = shared_;
  config.factor_shapes = nets_->factor_shapes();
  SPEEDO_ASSIGN(contribution_elements_, longest_contribution(config, *nets_));
  if (!options.merger.in_parts) {
    return make_merger(config, nets_->layout(), nets_->solver(), std::move(start), records(),
                       parts.make_backend);
  }
  SPEEDO_ASSERT(!shared_);
  const MasterConfig& session = options.session;
  parts_ = PartTerms{.desk = std::make_shared<PartDesk>(platform_),
                     .parts = store_->parts(),
                     .welcome = {.store = session.store.text(),
                                 .job = session.job,
                                 .model_high = session.model.high,
                                 .model_low = session.model.low,
                                 .term = session.term,
                                 .silence_ms = silence_ms_of(session)}};
  const bool has_copies = options.merger.part_copies;
  parts_record_ = encode(PartRecord{.layout = nets_->layout(),
                                    .publish_interval = config.publish_interval,
                                    .has_copies = has_copies,
                                    .factor_shapes = config.factor_shapes});
  const PartSetup setup{.clip = {},
                        .config = config,
                        .layout = nets_->layout(),
                        .solver = nets_->solver(),
                        .store = store_,
                        .make_backend = parts.make_backend,
                        .has_copies = has_copies};
  if (!any_replicated(config.stages)) {
    return make_joined_merger(setup, std::move(start), parts_->desk);
  }
  SPEEDO_TRY(check_parts(config.stages, nets_->solver()));
  config.step_parts = std::make_shared<JoinedSteps>(setup, parts_->desk);
  return make_merger(config, nets_->layout(), nets_->solver(), std::move(start), records(),
                     parts.make_backend);
}

std::shared_ptr<RecordStore> JobMaster::records() const {
  if (shared_) return shared_;
  return store_;
}

Result<Version> JobMaster::begin(std::uint32_t stage, std::string state,
                                 const StartLimits& limits) {
  Answer<Result<Version>> published(platform_);
  merger_->enter_stage(stage, std::move(state),
                       [&](Result<Version> version) { published.set(std::move(version)); });
  SPEEDO_ASSIGN(const Version version, wait_for_start(published, limits));
  SPEEDO_TRY(erase_job_end(*store_));
  SPEEDO_TRY(put_job());
  return version;
}

Result<void> JobMaster::put_job() {
  if (parts_) SPEEDO_TRY(store_->put_blob(parts_key(), parts_record_));
  return store_->put_blob(job_key(), job_record_);
}

// Always to the end of the publication: once the store is waited for no longer, that is soon.
Result<Version> JobMaster::wait_for_start(Answer<Result<Version>>& published,
                                          const StartLimits& limits) {
  StoreAbsence absence(limits.store_timeout);
  const Clock& clock = limits.clock != nullptr ? *limits.clock : platform_.clock();
  std::optional<Error> given_up;
  while (!given_up && !published.wait_for(kTickInterval)) {
    given_up = why_give_up(absence, merger_->waits_because(), limits, clock.now());
  }
  if (given_up) stop_waiting();
  auto version = published.wait();
  if (!version && given_up && is_transient(version.error().code)) return *given_up;
  return version;
}

void JobMaster::merge(master_command::StartMerge job,
                      std::function<void(Result<MergeResult>)> done) {
  merger_->merge(std::move(job), std::move(done));
}

void JobMaster::expect(master_command::StartMerge job) { merger_->expect(std::move(job)); }

void JobMaster::enter_stage(std::uint32_t stage, std::string state,
                            std::function<void(Result<Version>)> done) {
  merger_->enter_stage(stage, std::move(state), std::move(done));
}

void JobMaster::test(std::function<void(Result<std::vector<TestScores>>)> done) {
  merger_->copy([this, done = std::move(done)](Result<Merger::Copy> copy) {
    if (!copy) return done(copy.error());
    nets_->test(std::make_shared<const Merger::Copy>(std::move(*copy)), done);
  });
}

// A copy that fails leaves no snapshot open: what is said of its workers then is of no more use.
void JobMaster::snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) {
  {
    const std::lock_guard lock(mutex_);
    open_snapshot_ = OpenSnapshot{iteration, std::move(done)};
    if (!snapshot_workers_) open_snapshot_->workers.emplace();
  }
  merger_->copy([this](Result<Merger::Copy> copy) {
    if (!copy) {
      std::unique_lock lock(mutex_);
      const auto failed = std::exchange(open_snapshot_, std::nullopt)->done;
      lock.unlock();
      return failed(copy.error());
    }
    {
      const std::lock_guard lock(mutex_);
      open_snapshot_->copy = std::make_shared<const Merger::Copy>(std::move(*copy));
    }
    write_if_complete();
  });
}

void JobMaster::finish_snapshot(const master_command::FinishSnapshot& command) {
  {
    const std::lock_guard lock(mutex_);
    if (!open_snapshot_ || open_snapshot_->iteration != command.iteration) return;
    open_snapshot_->workers = command.workers;
  }
  write_if_complete();
}

void JobMaster::write_if_complete() {
  std::unique_lock lock(mutex_);
  if (!open_snapshot_ || !open_snapshot_->copy || !open_snapshot_->workers) return;
  OpenSnapshot snapshot = *std::exchange(open_snapshot_, std::nullopt);
  lock.unlock();
  write_files(std::move(snapshot));
}

// States are erased once they are in files: one that could not be written is tried again.
void JobMaster::write_files(OpenSnapshot snapshot) {
  const std::vector<WorkerId> workers = std::move(*snapshot.workers);
  const auto write = [this, workers](std::int64_t number, const caffe::NetParameter& model,
                                     caffe::SolverState& state,
                                     const std::string& session) -> Result<void> {
    const auto iteration = static_cast<std::uint64_t>(number);
    SPEEDO_TRY(write_snapshot_(SnapshotParts{
        .iteration = number,
        .model = model,
        .state = state,
        .session = session,
        .model_digest = nets_->layout().digest(),
        .workers = workers,
        .state_of = [this, iteration](WorkerId worker) { return state_of(worker, iteration); }}));
    for (const WorkerId worker : workers) {
      store_->erase(state_key(term_, worker.value)).ignore("it goes at the end");
    }
    return {};
  };
  nets_->snapshot(snapshot.iteration, snapshot.copy, write, snapshot.done);
}

// What a worker says of itself goes into a checkpoint: only as what another can go on with.
Result<StateOfWorker> JobMaster::state_of(WorkerId worker, std::uint64_t iteration) const {
  const std::string key = state_key(term_, worker.value);
  const Digest model = nets_->layout().digest();
  const auto arena = static_cast<std::uint64_t>(nets_->layout().element_count());
  SPEEDO_ASSIGN(StateOfWorker state, get_state(*store_, key, model, arena));
  const record::WorkerState& head = state.head;
  if (head.iteration() != iteration || head.worker() != worker.value || head.term() != term_) {
    return Error{
        ErrorCode::kMismatch,
        fmt::format("the state of worker {} in the store is of worker {}, iteration {}, "
                    "term {} instead of iteration {}, term {}",
                    worker.value, head.worker(), head.iteration(), head.term(), iteration, term_)};
  }
  const caffe::SolverParameter& solver = nets_->solver();
  SPEEDO_TRY(check_owner(head, {.model = model, .solver_type = solver.type(), .stages = stages_}));
  SPEEDO_TRY(check_sizes(head, stages_, solver, arena));
  return state;
}

void JobMaster::watch(Instant now, std::function<void(Result<void>)> seen) {
  if (watched_at_ && now - *watched_at_ < kJobWatchInterval) return;
  if (watching_.exchange(true)) return;
  watched_at_ = now;
  housekeeping_.post([this, seen = std::move(seen)] {
    auto looked = look_after_store();
    // What time does not mend is for those to say who meet it at their work. Of weights that are
    // lost for good only the merger knows: nobody can work.
    const bool is_away = !looked && is_transient(looked.error().code);
    const bool is_met = !looked && !is_away && looked.error().code != ErrorCode::kSuperseded;
    if (is_met) looked = {};
    store_away_ = is_away;
    if (looked) erasing_.post([this] { erase_records_of_gone(); });
    if (const auto waits = merger_->waits_because(); looked && waits) looked = *waits;
    watching_ = false;
    seen(std::move(looked));
  });
}

// A store that was emptied, or restarted without its data or with older ones, gets the job again;
// the weights are the merger's care. One that can only be read, or not be written in time, is as
// good as away.
Result<void> JobMaster::look_after_store() {
  SPEEDO_TRY(probe_servers());
  SPEEDO_ASSIGN(bool is_there, has_blob(job_key(), job_record_));
  if (is_there && parts_) {
    SPEEDO_ASSIGN(is_there, has_blob(parts_key(), parts_record_));
  }
  if (!is_there) {
    SPEEDO_WARN("the store has lost the job, or has an earlier one in its place; publishing it "
                "again");
    SPEEDO_TRY(put_job());
  }
  return {};
}

// All of them: one that is away keeps workers from their weights, and the others from handing in.
Result<void> JobMaster::probe_servers() {
  SPEEDO_TRY(store_->put_blob(probe_key(), ""));
  for (std::size_t part = 1; part < store_->parts(); ++part) {
    SPEEDO_TRY(store_->put_blob(part_key(part, probe_key()), ""));
  }
  return {};
}

// Whether the store has exactly this value. Error: it does not say.
Result<bool> JobMaster::has_blob(std::string_view key, const std::string& value) {
  const auto blob = store_->get_blob(key);
  if (blob) return *blob == value;
  const ErrorCode code = blob.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt) return false;
  return blob.error();
}

void JobMaster::erase_worker(WorkerId worker) {
  {
    const std::lock_guard lock(mutex_);
    gone_.push_back(worker.value);
  }
  erasing_.post([this] { erase_records_of_gone(); });
}

void JobMaster::erase_seat(std::uint64_t seat) {
  erasing_.post(
      [this, seat] { store_->erase(seat_key(term_, seat)).ignore("it goes at the end"); });
}

// From a store that is away once it is back: watch() comes to that.
void JobMaster::erase_records_of_gone() {
  while (!store_away_) {
    std::uint64_t worker = 0;
    {
      const std::lock_guard lock(mutex_);
      if (gone_.empty()) return;
      worker = gone_.front();
      gone_.pop_front();
    }
    const auto erased = erase_records(worker);
    if (erased) continue;
    if (is_transient(erased.error().code)) {
      store_away_ = true;
      const std::lock_guard lock(mutex_);
      gone_.push_front(worker);
      return;
    }
    SPEEDO_WARN("what worker {} left in the store stays until it expires: {}", worker,
                erased.error().message);
  }
}

Result<void> JobMaster::erase_records(std::uint64_t worker) {
  SPEEDO_TRY(records()->erase(contribution_key(term_, worker), contribution_elements_));
  if (snapshot_workers_) {
    const std::uint64_t longest = kStateArraysMax * nets_->layout().element_count();
    SPEEDO_TRY(store_->erase(state_key(term_, worker), longest));
  }
  // As long as what it is made of; a merge that was broken off has left chunks without manifest.
  return store_->erase(local_key(term_, worker), contribution_elements_);
}

// The first one asks less of a store that may be away than a list of all does.
void JobMaster::erase_contributions() {
  Result<void> erased = records()->erase(step_key(term_));
  if (erased) erased = records()->clear_contributions();
  if (erased) return;
  SPEEDO_WARN("contributions stay in the store until they expire: {}", erased.error().message);
}

void JobMaster::put_end() {
  put_job_end(*store_, term_).ignore("workers that are away then look for the master for a while");
}

void JobMaster::stop_waiting() {
  store_->stop_waiting();
  merger_->stop_waiting();
  if (parts_) parts_->desk->stop();
}

}  // namespace speedo
