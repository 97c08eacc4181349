#include "train/job/master_run.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "base/log.hpp"
#include "train/job/job_start.hpp"
#include "train/note_text.hpp"
#include "train/replicas/factor_plan.hpp"

namespace speedo {
namespace {

// What workers are told must fit into a message.
Result<void> check_length(const char* flag, const std::string& text) {
  if (text.size() <= kTextMax) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("{}: {} bytes, at most {} are possible", flag, text.size(), kTextMax)};
}

Result<void> check(const MasterOptions& options) {
  SPEEDO_TRY(check_length("--redis", options.store.text()));
  SPEEDO_TRY(check_length("--job", options.job));
  for (const Schedule& stage : options.session.stages) {
    SPEEDO_TRY(check_schedule(stage));
    SPEEDO_TRY([&]() -> Result<void> {
      SPEEDO_ASSIGN([[maybe_unused]] const auto strategy, make_strategy(stage.strategy));
      return {};
    }());
  }
  return {};
}

Result<std::unique_ptr<MasterLease>> claim(const MasterOptions& options, MasterRun::Parts& parts,
                                           std::shared_ptr<MasterStore> store) {
  MasterLease::Options how{.job = options.job,
                           .take_over = options.take_over,
                           .poll_stop = parts.hooks.poll_stop,
                           .platform = parts.parts.platform};
  if (!options.initial_session.empty()) {
    // One that cannot be read is refused, or passed over, where it is to be restored.
    const auto origin = MasterSession::origin_of(options.initial_session);
    if (origin) how.term_floor = origin->term + 1;
  }
  SPEEDO_ASSIGN(auto lease, MasterLease::claim(std::move(store), std::move(how)));
  lease->keep(std::move(parts.lost));
  return lease;
}

// `updates`: of the stages. Groups merge means, too, of their members.
std::vector<bool> adds_one_by_one(const std::vector<Schedule>& stages,
                                  const std::vector<UpdateSpec>& updates) {
  std::vector<bool> adds;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    adds.push_back(!updates[i].in_rounds && stages[i].strategy.name != "grouping");
  }
  return adds;
}

// What the checkpoint has of workers, for those of this master.
Result<void> deal_states(const MasterOptions& options, const JobNets& nets, RecordStore& store) {
  const MasterConfig& config = options.session;
  const SavedStates& states = options.initial_states;
  if (states.count == 0) return {};
  SPEEDO_INFO("The states of {}, as far as they can be read, go to the first {} that train{}",
              count_workers(states.count), seats_for(states.count, config.seats),
              config.seats < states.count ? ", each the mean of its share" : "");
  const JobTerms& terms = options.spec;
  if (terms.deterministic && states.count < terms.expected_workers) {
    SPEEDO_WARN(
        "the checkpoint has the states of {}, and {} train: training goes on, but not to "
        "the bits that it would have had (--deterministic)",
        count_workers(states.count), terms.expected_workers);
  }
  const std::vector<UpdateSpec> updates = updates_of(config.stages);
  return speedo::deal_states(states, config.seats, config.term,
                             {.model = nets.layout().digest(),
                              .solver_type = nets.solver().type(),
                              .stages = updates,
                              .workers = terms.expected_workers,
                              .offset_shards = terms.offset_shards,
                              .needs_all = terms.deterministic,
                              .adds_residuals = adds_one_by_one(config.stages, updates)},
                             store);
}

// What workers have alone, of which the start may have nothing.
Result<void> mind_states(MasterOptions& options, const JobStart& start, const JobNets& nets) {
  MasterConfig& config = options.session;
  if (!config.snapshot_workers) return {};
  SPEEDO_ASSIGN(const std::uint64_t arrays,
                arrays_of_a_worker(updates_of(config.stages), nets.solver()));
  config.minds_lost_states = options.spec.deterministic && arrays > 0;
  const bool files_have_none =
      !start.checkpoint.session.empty() && options.initial_states.count == 0;
  if (!start.from_store && !files_have_none) return {};
  const auto what = start.from_store ? WithoutStates::kStore : WithoutStates::kFile;
  const std::string lost = lost_without_states(what, arrays, options.spec.deterministic);
  if (!lost.empty()) SPEEDO_WARN("{}", lost);
  return {};
}

Result<std::unique_ptr<JobNets>> make_nets(const MasterOptions& options, const JobSpec& spec,
                                           const TrainerParts& parts) {
  const MasterConfig& config = options.session;
  return JobNets::create(parts, {.job = spec,
                                 .with_tests = has_tests(config),
                                 .initial_weights = options.initial_weights,
                                 .initial_state = options.initial_state});
}

// An earlier master of the job did not end as it should.
bool had_another_master(BlobStore& store) {
  return store.get_blob(job_key()).has_value() && !store.get_blob(ended_key()).has_value();
}

}  // namespace

Result<MasterOptions> complete(const MasterOptions& options) {
  SPEEDO_TRY(check(options));
  MasterOptions complete = options;
  complete.session.store = options.store;
  complete.session.job = options.job;
  return complete;
}

void MasterRun::stop_waiting() {
  if (lease_store_) lease_store_->stop_waiting();
  if (job_) job_->stop_waiting();
}

// Chooses what training goes on from, and makes its session.
Result<JobStart> MasterRun::begin_session(MasterOptions& options, const Parts& parts,
                                          ParameterStore& store, JobNets& nets) {
  MasterConfig& config = options.session;
  Platform& platform = *parts.parts.platform;
  SPEEDO_ASSIGN(JobStart start, find_start(options, config, nets, store));
  const std::string& state = start.checkpoint.session;
  config.first_version = Version{start.checkpoint.version.value + 1};
  if (start.from_store) config.training = {};
  SPEEDO_TRY(mind_states(options, start, nets));
  if (start.from_store || !config.snapshot_workers) options.initial_states = {};
  config.seats = seats_for(options.initial_states.count, config.workers_start);
  // A place in the data of which there is no state goes to who is without one.
  config.offset_shards = options.spec.offset_shards;
  if (config.offset_shards && config.seats != 0) config.seats = config.workers_start;
  resumed_ = start.from_store || !state.empty() || config.training.is_known();
  if (resumed_ && options.spec.offset_shards && config.seats == 0) {
    SPEEDO_WARN("--shard offset: where each worker was in its data is among the states of workers, "
                "of which there are none (see --snapshot-workers); all begin their data anew");
  }
  while (!config.training.is_known()) {
    config.training = {platform.random_bits(), platform.random_bits()};
  }
  has_orphans_ = had_another_master(store);
  session_ = std::make_unique<MasterSession>(config, options.make_strategy);
  if (!state.empty()) SPEEDO_TRY(session_->restore(state));
  if (parts.hooks.on_training) {
    // Not by one that was replaced while it came here: files know no terms.
    SPEEDO_TRY(store.put_blob(probe_key(), ""));
    SPEEDO_TRY(
        parts.hooks.on_training(session_->training(), !resumed_, session_->progress().iteration));
  }
  if (!start.from_store) {
    SPEEDO_TRY(store.clear());
    return start;
  }
  // Nobody reads what the workers of a master that died have left, nor what masters that died in
  // their first put have.
  if (has_orphans_) SPEEDO_TRY(store.clear_contributions());
  if (auto erased = store.erase_unnamed(); !erased) {
    if (erased.error().code == ErrorCode::kSuperseded) return erased.error();
    SPEEDO_WARN("What earlier masters have not finished stays in the store: {}",
                erased.error().message);
  }
  return start;
}

Result<MasterRun> MasterRun::prepare(MasterOptions options, Parts parts) {
  MasterRun made;
  MasterConfig& config = options.session;
  const MasterHooks& hooks = parts.hooks;
  const OpenStore open_store = waiting_opener(parts.open_store,
                                              {.store_timeout = config.store_timeout,
                                               .poll_stop = hooks.poll_stop,
                                               .platform = parts.parts.platform});
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> store, open_store(options.store, options.job));
  if (options.merger.in_parts && any_replicated(config.stages)) {
    options.spec.step_parts = static_cast<std::uint32_t>(store->parts());
  }
  SPEEDO_ASSIGN(const JobSpec spec, with_seed_of_job(job_spec(options), options.resume, *store));
  options.spec.solver_text = spec.solver_text;
  SPEEDO_ASSIGN(auto nets, make_nets(options, spec, parts.parts));
  if (hooks.admit) {
    const auto floats = static_cast<std::int64_t>(sizeof(float));
    SPEEDO_TRY(hooks.admit(nets->layout().parameter_count() * floats));
  }
  SPEEDO_ASSIGN(made.lease_store_, open_store(options.store, options.job));
  SPEEDO_ASSIGN(made.lease_, claim(options, parts, made.lease_store_));
  config.term = config.first_run = made.lease_->term();
  store->fence(config.term);
  if (hooks.choose_files && made.lease_->was_held()) {
    hooks.choose_files(options);
    SPEEDO_ASSIGN(nets, make_nets(options, spec, parts.parts));
  }

  config.model = nets->layout().digest();
  if (!any_factors(spec.stages, nets->factor_shapes(), spec.expected_workers)) {
    config.device.clear();
  }
  const bool is_shared = !options.merger.in_parts && !any_replicated(config.stages);
  if (is_shared) made.memory_ = share_memory(parts.parts, store, config.term);
  if (made.memory_.door) config.memory = made.memory_.door->address();
  SPEEDO_ASSIGN(JobStart start, made.begin_session(options, parts, *store, *nets));
  SPEEDO_TRY(deal_states(options, *nets, *store));
  auto write = hooks.snapshot;
  if (!write) write = [](const SnapshotParts&) -> Result<void> { return {}; };
  SPEEDO_ASSIGN(made.job_, JobMaster::create(options, parts.parts, std::move(nets),
                                             {std::move(store), made.memory_.store},
                                             std::move(start.checkpoint), std::move(write)));
  SPEEDO_ASSIGN(
      const Version first,
      made.job_->begin(made.session_->progress().stage, made.session_->save(),
                       {.store_timeout = config.store_timeout, .poll_stop = hooks.poll_stop}));
  SPEEDO_ASSERT(first == config.first_version);
  return made;
}

void MasterRun::end(const std::optional<Error>& error, bool broken) {
  stop_waiting();
  const bool superseded = error && error->code == ErrorCode::kSuperseded;
  if (superseded || broken) return;
  job_->erase_contributions();
  if (!another_follows(error)) job_->put_end();
}

}  // namespace speedo
