#include "train/job/job_start.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/core/update_rule.hpp>

#include "base/log.hpp"
#include "core/prototxt.hpp"
#include "train/job/job_solver.hpp"
#include "train/note_text.hpp"
#include "train/parts/clipped_store.hpp"
#include "train/parts/part_histories.hpp"

namespace speedo {
namespace {

// Whether a session of this job can go on from the state. Errors: those of restore().
Result<void> check_state(const MasterOptions& options, const MasterConfig& config,
                         const std::string& state) {
  if (state.empty()) return {};
  return MasterSession(config, options.make_strategy).restore(state);
}

// From the files that were given, or the net's fillers.
JobStart start_anew(const MasterOptions& options, JobNets& nets) {
  JobStart start{.checkpoint = nets.take_start(), .from_store = false};
  start.checkpoint.session = options.initial_session;
  return start;
}

// Of a job in parts: one of the servers has lost its own, and others may have copies. Histories are
// the parts' own care.
Result<Checkpoint> joined_from_copies(const ParameterLayout& layout, ParameterStore& store) {
  Checkpoint found;
  found.weights.resize(static_cast<std::size_t>(layout.element_count()));
  const std::shared_ptr<ParameterStore> all(&store, [](auto*) {});
  SPEEDO_ASSIGN(const RecordInfo info, read_all_parts(all, layout, found.weights));
  found.version = Version{info.version};
  found.session = info.state;
  return found;
}

bool wants_histories(const MasterOptions& options) {
  return wants_histories(updates_of(options.session.stages));
}

// Histories of another solver type mean something else, even where there are as many.
Result<void> check_histories(const MasterOptions& options, const JobNets& nets,
                             BlobStore& store) {
  if (!wants_histories(options)) return {};
  const auto record = store.get_blob(job_key());
  if (!record) return {};
  const auto before = decode_job(*record);
  if (!before || !wants_histories(before->stages)) return {};
  const auto solver = parse_solver(*before);
  const std::string& type = nets.solver().type();
  if (!solver || UpdateRule::have_same_histories(solver->type(), type)) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("the store has job '{2}' of a solver of type \"{0}\", and this one's is "
                           "\"{1}\": histories of one are not those of the other; set type: "
                           "\"{0}\", or start a new training from a .caffemodel with --weights",
                           solver->type(), type, options.job)};
}

// What the store has to go on from.
struct StoredStart {
  Checkpoint checkpoint;
  // Of what the solver remembers. Histories of parts are their mergers' care.
  enum class Memory { kWhole, kJoined, kOlder, kNone };
  Memory memory = Memory::kWhole;
};

// Says what of the solver's memory is not gone on with, and where the rest comes from.
void tell_of_histories(const MasterOptions& options, const StoredStart& found,
                       ParameterStore& store, bool has_parts) {
  if (!wants_histories(options)) {
    if (!has_parts && !store.read(checkpoint_key())) return;
    SPEEDO_WARN("the store has the solver's history, which this job's master does not use: it goes "
                "with the first merge (was it started with --gradient-only before?)");
    return;
  }
  switch (found.memory) {
    case StoredStart::Memory::kWhole:
      return;
    case StoredStart::Memory::kJoined:
      SPEEDO_INFO("the solver's history is joined from what the mergers of shards have left");
      return;
    case StoredStart::Memory::kOlder:
      SPEEDO_WARN("the solver's history is joined from what the mergers of shards have left, some "
                  "merges before the weights (see --publish-interval)");
      return;
    case StoredStart::Memory::kNone:
      if (has_parts) {
        SPEEDO_WARN("the store has the solver's history in parts, but not all of them whole and of "
                    "the weights' master: it begins anew");
      } else {
        SPEEDO_WARN("the store has no history of the solver, which begins anew");
      }
  }
}

JobStart start_from_store(const MasterOptions& options, StoredStart found, ParameterStore& store) {
  std::vector<std::string> parts = part_checkpoints_in(store);
  tell_of_histories(options, found, store, !parts.empty());
  JobStart start{.checkpoint = std::move(found.checkpoint), .from_store = true};
  if (!has_weights_in_parts(options)) start.checkpoint.replaced = std::move(parts);
  return start;
}

// Mergers of parts have left what a master that merges the whole goes on with.
Result<StoredStart::Memory> find_memory(const MasterOptions& options, const JobNets& nets,
                                        ParameterStore& store, Checkpoint& found) {
  const auto count = UpdateRule::history_count(nets.solver());
  const bool is_missing = wants_histories(options) && !has_weights_in_parts(options) &&
                          found.histories.empty() && count && *count > 0;
  if (!is_missing) return StoredStart::Memory::kWhole;
  auto joined = read_part_histories(store, nets.layout());
  if (joined) {
    found.histories = std::move(joined->histories);
    return joined->are_older ? StoredStart::Memory::kOlder : StoredStart::Memory::kJoined;
  }
  if (is_transient(joined.error().code)) return joined.error();
  return StoredStart::Memory::kNone;
}

// A whole record of weights and histories, damaged or not: what is lost of it, no copy has.
bool has_whole_checkpoint(ParameterStore& store) {
  const auto record = store.read(checkpoint_key());
  return record || record.error().code == ErrorCode::kCorrupt;
}

Result<StoredStart> stored(const MasterOptions& options, const MasterConfig& config, JobNets& nets,
                           ParameterStore& store) {
  const bool with_histories = wants_histories(options);
  auto read = read_checkpoint(store, nets.layout(), with_histories);
  const bool is_damaged = !read && read.error().code == ErrorCode::kCorrupt;
  const bool may_need_whole = with_histories && !has_weights_in_parts(options);
  if (is_damaged && store.parts() > 1 && !(may_need_whole && has_whole_checkpoint(store))) {
    auto joined = joined_from_copies(nets.layout(), store);
    // Copies that could not be read now are not known to be gone.
    if (joined || is_transient(joined.error().code)) read = std::move(joined);
  }
  SPEEDO_ASSIGN(Checkpoint found, std::move(read));
  SPEEDO_TRY(check_state(options, config, found.session));
  SPEEDO_TRY(check_histories(options, nets, store));
  SPEEDO_ASSIGN(const StoredStart::Memory memory, find_memory(options, nets, store, found));
  return StoredStart{std::move(found), memory};
}

Error nothing_there(const MasterOptions& options, const Error& error) {
  return Error{ErrorCode::kNotFound,
               fmt::format("nothing to resume in the store under job '{}' ({}): check --redis and "
                           "--job, leave --resume out to start anew, or give --resume=FILE",
                           options.job, error.message)};
}

Error damaged_there(const MasterOptions& options, const Error& error) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("what the store has of job '{}' is damaged, and no files of it were "
                           "found ({}): give --resume=FILE, or leave --resume out to start anew",
                           options.job, error.message)};
}

// Weights without a state are of nobody knows which training.
Result<MasterSession::Origin> origin_of(const std::string& state) {
  if (state.empty()) return MasterSession::Origin{};
  return MasterSession::origin_of(state);
}

// Files of a training in one process have no state, and so no master's term.
Result<MasterSession::Origin> origin_of_files(const MasterOptions& options,
                                              const MasterConfig& config) {
  if (!options.initial_session.empty()) return MasterSession::origin_of(options.initial_session);
  return MasterSession::Origin{config.training, 0, config.start_iteration};
}

// Whether files of the same iteration have more of what the solver remembers than the store.
bool remember_more(const MasterOptions& options, StoredStart::Memory in_store) {
  const bool is_all_there =
      in_store == StoredStart::Memory::kWhole || in_store == StoredStart::Memory::kJoined;
  if (is_all_there) return false;
  return std::ranges::any_of(options.initial_state->history(), [](const auto& history) {
    return std::ranges::any_of(history.data(), [](float value) { return value != 0.0F; });
  });
}

// Whether the store's checkpoint is the one to go on from, and a line that says why. The store's
// training is the job's: files of another one do not count beside it. Without a term the
// iteration alone says what is newer; of the same one, files that `remember_more` are.
Result<bool> prefers_store(const std::string& store_state, MasterSession::Origin files,
                           bool remember_more) {
  SPEEDO_ASSIGN(const MasterSession::Origin store, origin_of(store_state));
  if (files.term == 0) files.term = store.term;
  if (store.training != files.training) {
    SPEEDO_WARN("--resume=auto: the store has iteration {} of training {}, the files have "
                "iteration {} of another one, {}; going on from the store",
                store.iteration, short_name(store.training), files.iteration,
                short_name(files.training));
    return true;
  }
  const bool files_are_newer = files.is_newer_than(store);
  if (remember_more && !files_are_newer && !store.is_newer_than(files)) {
    SPEEDO_INFO("--resume=auto: training {} has iteration {} in the store and in the files; going "
                "on from the files, which have the solver's history of it",
                short_name(store.training), store.iteration);
    return false;
  }
  SPEEDO_INFO("--resume=auto: training {} has iteration {} in the store and {} in the files; going "
              "on from the {}, which are {}",
              short_name(store.training), store.iteration, files.iteration,
              files_are_newer ? "files" : "store's weights",
              files_are_newer || store.is_newer_than(files) ? "newer" : "the same");
  return !files_are_newer;
}

// With --snapshot-workers, files that have the workers' states are gone on from although the store
// has newer weights: nobody has the states that belong to those.
bool prefers_states(const MasterOptions& options, const MasterSession::Origin& files,
                    const std::string& store_state) {
  if (!options.session.snapshot_workers || options.initial_states.count == 0) return false;
  const auto store = origin_of(store_state);
  if (!store || store->training != files.training) return false;
  SPEEDO_INFO("--resume=auto: training {} has iteration {} in the store and {} in the files, with "
              "the states of {}; going on from the files (without --snapshot-workers from the "
              "newer ones)",
              short_name(files.training), store->iteration, files.iteration,
              count_workers(options.initial_states.count));
  return true;
}

std::string start_without_store(const MasterOptions& options, bool has_files) {
  if (has_files) return "going on from the files";
  if (options.given_start.empty()) return "starting anew";
  return "starting from " + options.given_start;
}

// What is damaged, or another job's, only counts as missing if there are files; not where the
// store's servers are in another order, which nothing may be written in.
Result<JobStart> newest(const MasterOptions& options, const MasterConfig& config, JobNets& nets,
                        ParameterStore& store) {
  auto in_store = stored(options, config, nets, store);
  // Weights without a solver's state are those that a training begins with, no checkpoint of it;
  // and so is all of a start that was given.
  const bool has_files = options.initial_state != nullptr && options.given_start.empty();
  if (!in_store) {
    const Error& error = in_store.error();
    const bool passed_over =
        error.code == ErrorCode::kNotFound ||
        (has_files && (error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kMismatch));
    if (passed_over || error.code == ErrorCode::kCorrupt) SPEEDO_TRY(store.check_places());
    if (error.code == ErrorCode::kCorrupt && !passed_over) return damaged_there(options, error);
    if (!passed_over) return error;
    if (options.start_fault) return *options.start_fault;
    const std::string instead = start_without_store(options, has_files);
    if (error.code == ErrorCode::kNotFound) {
      SPEEDO_INFO("--resume=auto: the store has nothing of this job; {}", instead);
    } else {
      SPEEDO_WARN("--resume=auto: {}; {}", error.message, instead);
    }
    return start_anew(options, nets);
  }
  if (has_files) {
    SPEEDO_TRY(check_state(options, config, options.initial_session));
    SPEEDO_ASSIGN(const MasterSession::Origin files, origin_of_files(options, config));
    const std::string& session = in_store->checkpoint.session;
    if (prefers_states(options, files, session)) return start_anew(options, nets);
    SPEEDO_ASSIGN(const bool from_store,
                  prefers_store(session, files, remember_more(options, in_store->memory)));
    if (!from_store) return start_anew(options, nets);
  } else if (!options.given_start.empty()) {
    SPEEDO_INFO("--resume=auto: going on from what the store has of this job, not from {}",
                options.given_start);
  }
  return start_from_store(options, std::move(in_store).value(), store);
}

}  // namespace

Result<JobSpec> with_seed_of_job(JobSpec spec, MasterOptions::Resume resume,
                                 BlobStore& store) {
  SPEEDO_ASSIGN(caffe::SolverParameter solver, parse_solver(spec));
  if (solver.random_seed() >= 0 || resume == MasterOptions::Resume::kNo) return with_seed(spec);
  const auto record = store.get_blob(job_key());
  if (!record) return with_seed(spec);
  SPEEDO_ASSIGN(const JobSpec before, decode_job(*record));
  SPEEDO_ASSIGN(const caffe::SolverParameter same, parse_solver(before));
  solver.set_random_seed(same.random_seed());
  spec.solver_text = to_prototxt(solver);
  return with_seed(spec);
}

std::optional<TrainingId> training_in(RecordStore& store) {
  const auto weights = store.read(weights_key());
  if (!weights) return std::nullopt;
  const auto origin = MasterSession::origin_of((*weights)->info().state);
  if (!origin) return std::nullopt;
  return origin->training;
}

Result<JobStart> find_start(const MasterOptions& options, const MasterConfig& config,
                            JobNets& nets, ParameterStore& store) {
  if (options.resume == MasterOptions::Resume::kNo) {
    SPEEDO_TRY(check_state(options, config, options.initial_session));
    return start_anew(options, nets);
  }
  if (options.resume == MasterOptions::Resume::kNewest) return newest(options, config, nets, store);
  auto found = stored(options, config, nets, store);
  if (!found && found.error().code == ErrorCode::kNotFound) {
    return nothing_there(options, found.error());
  }
  if (!found) return found.error();
  if (options.renumber) found->checkpoint.session.clear();
  return start_from_store(options, std::move(found).value(), store);
}

}  // namespace speedo
