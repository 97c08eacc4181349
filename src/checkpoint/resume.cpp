#include "checkpoint/resume.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.hpp"
#include "checkpoint/training_file.hpp"
#include "train/note_text.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kStateBytesMax = std::size_t{1} << 34U;  // of a worker

// What `read` makes of a file that a record names. A writer that goes on may give it its name just
// after it was found without.
template <class Read>
auto read_part(const FoundRecord& found, const record::CheckpointFile::Part& part,
               CheckpointFiles& files, const Read& read) -> decltype(read(fs::path())) {
  const fs::path folder = found.path.parent_path();
  SPEEDO_ASSIGN(const fs::path path, find_part(folder, found.record, part, files));
  auto content = read(path);
  if (content) return content;
  const auto now = find_part(folder, found.record, part, files);
  return now && *now != path ? read(*now) : std::move(content);
}

// In the order of their seats. One that is damaged or gone keeps its own and fails when it is read.
SavedStates find_states(const FoundRecord& found, CheckpointFiles& files) {
  const std::vector<record::CheckpointFile::Part> parts(found.record.worker().begin(),
                                                        found.record.worker().end());
  const TrainingId training = training_of(found.record);
  const std::uint64_t iteration = found.record.iteration();
  const std::size_t count = parts.size();
  return SavedStates{
      count, [found, parts, training, iteration, &files](std::size_t k) -> Result<StateOfWorker> {
        const record::CheckpointFile::Part& part = parts[k];
        const std::string name = (found.path.parent_path() / part.name()).string();
        SPEEDO_ASSIGN(const std::string bytes,
                      read_part(found, part, files, [&](const fs::path& file) {
                        return files.read(file, kStateBytesMax);
                      }));
        SPEEDO_ASSIGN(StateOfWorker state, parse_state_file(bytes, name));
        const TrainingId own{state.head.training_high(), state.head.training_low()};
        if (own == training && state.head.iteration() == iteration) return state;
        return Error{
            ErrorCode::kMismatch,
            fmt::format("'{}' is of iteration {} of training {}, its checkpoint of iteration "
                        "{} of training {}",
                        name, state.head.iteration(), short_name(own), iteration,
                        short_name(training))};
      }};
}

Result<void> check_states(const SavedStates& states, StatesNeeded needed, const fs::path& record) {
  for (std::size_t k = 0; needed != StatesNeeded::kNone && k < states.count; ++k) {
    const auto state = states.read(k);
    if (state || (needed == StatesNeeded::kWhatIsLeft && is_state_lost(state.error()))) continue;
    return Error{state.error().code,
                 fmt::format("checkpoint '{}' lacks the state of a worker: {}; go on from an "
                             "earlier one with --resume=FILE.speedo, or leave {} out",
                             record.string(), state.error().message,
                             needed == StatesNeeded::kAll ? "--deterministic or --snapshot-workers"
                                                          : "--snapshot-workers")};
  }
  return {};
}

Result<SavedCheckpoint> load(FoundRecord found, const CheckpointOwner& owner,
                             CheckpointFiles& files) {
  SPEEDO_TRY(check_owner(found, owner));
  const record::CheckpointFile& record = found.record;
  SavedCheckpoint saved;
  SPEEDO_ASSIGN(saved.model, read_part(found, record.model(), files, [&](const fs::path& file) {
                  return files.read_model(file);
                }));
  SPEEDO_ASSIGN(saved.state, read_part(found, record.state(), files, [&](const fs::path& file) {
                  return files.read_state(file);
                }));
  if (!is_finite(saved.model) || !is_finite(saved.state)) {
    return Error{ErrorCode::kData, "checkpoint '" + found.path.string() +
                                       "' holds weights that are not finite: training had "
                                       "diverged; go on from an earlier one"};
  }
  saved.workers = find_states(found, files);
  SPEEDO_TRY(check_states(saved.workers, owner.states, found.path));
  saved.record = std::move(found.record);
  return saved;
}

// How many, and which is the newest.
std::string describe(const std::vector<FoundRecord>& records) {
  const FoundRecord& newest = records.front();
  const std::string name = fmt::format("{} (iteration {}, training {})", newest.path.string(),
                                       newest.record.iteration(),
                                       short_name(training_of(newest.record)));
  if (records.size() == 1) return "checkpoint file " + name;
  return fmt::format("{} checkpoint files, the newest of which is {}", records.size(), name);
}

// Takes those out of `all` for which `is_out` holds; both keep their order.
template <class IsOut>
std::vector<FoundRecord> take_out(std::vector<FoundRecord>& all, const IsOut& is_out) {
  std::vector<FoundRecord> out;
  const auto first = std::stable_partition(all.begin(), all.end(), [&](const FoundRecord& each) {
    return !is_out(each);
  });
  std::move(first, all.end(), std::back_inserter(out));
  all.erase(first, all.end());
  return out;
}

// Of another net or job.
void leave_out_strangers(const CheckpointOwner& owner, std::vector<FoundRecord>& all) {
  const auto other_net = [&](const FoundRecord& each) {
    return model_of(each.record) != owner.model;
  };
  const auto other_job = [&](const FoundRecord& each) { return each.record.job() != owner.job; };
  const auto nets = take_out(all, other_net);
  const auto jobs = take_out(all, other_job);
  for (const std::vector<FoundRecord>* strangers : {&nets, &jobs}) {
    if (strangers->empty()) continue;
    SPEEDO_WARN("--resume=auto leaves out {}: {}", describe(*strangers),
                check_owner(strangers->front(), owner).error().message);
  }
}

void leave_out_other_trainings(const TrainingId& training, std::vector<FoundRecord>& all) {
  const auto others = take_out(all, [&](const FoundRecord& each) {
    return training_of(each.record) != training;
  });
  if (others.empty()) return;
  SPEEDO_WARN("--resume=auto leaves out {}: of another training than this job's, {}; "
              "--resume=FILE.speedo goes on from one of them",
              describe(others), short_name(training));
}

// The record beside a .solverstate that names it.
std::optional<FoundRecord> record_beside(const fs::path& state, CheckpointFiles& files) {
  const std::string name = state.filename().string();
  const std::size_t stem = name.rfind(".solverstate");
  if (stem == std::string::npos) return std::nullopt;
  const fs::path path = state.parent_path() / (name.substr(0, stem) + ".speedo");
  auto record = read_record(path, files);
  if (!record || record->state().name() != name) return std::nullopt;
  return FoundRecord{path, std::move(*record)};
}

// The same, if the state is as it was written with the record.
std::optional<FoundRecord> record_of_state(const fs::path& state, CheckpointFiles& files) {
  auto found = record_beside(state, files);
  if (!found) return std::nullopt;
  const auto own = find_part(state.parent_path(), found->record, found->record.state(), files);
  return own && *own == state ? std::move(found) : std::nullopt;
}

}  // namespace

Result<SavedCheckpoint> load_checkpoint(const std::string& file, const CheckpointOwner& owner,
                                        CheckpointFiles& files) {
  SPEEDO_ASSIGN(record::CheckpointFile record, read_record(file, files));
  return load({file, std::move(record)}, owner, files);
}

std::optional<SavedCheckpoint> newest_checkpoint(const std::string& prefix,
                                                 const CheckpointOwner& owner,
                                                 const std::optional<TrainingId>& training,
                                                 CheckpointFiles& files) {
  std::vector<DamagedRecord> damaged;
  std::vector<FoundRecord> all = find_records(prefix, &damaged, files);
  for (const DamagedRecord& each : damaged) {
    SPEEDO_WARN("--resume=auto skips {}: {}", each.path.string(), each.error.message);
  }
  leave_out_strangers(owner, all);
  if (training) leave_out_other_trainings(*training, all);
  for (const FoundRecord& found : all) {
    auto saved = load(found, owner, files);
    if (saved) {
      SPEEDO_INFO("--resume=auto: the newest valid checkpoint file{} is {}, iteration {}, of "
                  "training {}",
                  training ? "" : " (no training of this job is known here)", found.path.string(),
                  found.record.iteration(), short_name(training_of(found.record)));
      return std::move(*saved);
    }
    SPEEDO_WARN("--resume=auto skips {}: {}", found.path.string(), saved.error().message);
  }
  return std::nullopt;
}

std::optional<SavedCheckpoint> newest_of_job(const std::string& prefix,
                                             const CheckpointOwner& owner,
                                             const std::optional<TrainingId>& stored,
                                             CheckpointFiles& files) {
  const auto noted = read_training_file(training_file(prefix, owner.job), files);
  if (stored && noted && *stored != *noted) {
    SPEEDO_WARN(
        "--resume=auto: the store has training {}, and the last one that began with the "
        "prefix {} is {}, of which the store has nothing; going on with that of the store "
        "(leave --resume out for a new training)",
        short_name(*stored), prefix, short_name(*noted));
  }
  return newest_checkpoint(prefix, owner, stored ? stored : noted, files);
}

Result<void> check_state_type(const std::string& state_file, const std::string& solver_type,
                              CheckpointFiles& files) {
  const auto found = record_beside(state_file, files);
  return found ? check_solver_type(*found, solver_type) : Result<void>();
}

std::optional<std::int64_t> seed_of_state(const std::string& state_file, CheckpointFiles& files) {
  const auto found = record_of_state(state_file, files);
  if (found && found->record.has_random_seed()) return found->record.random_seed();
  SPEEDO_WARN(
      "'{}' has no random_seed beside it, in a .speedo file that it belongs to: data that are "
      "shuffled begin in a new order; --seed N gives the one that the training began with",
      state_file);
  return std::nullopt;
}

std::uint64_t data_step_of(const record::CheckpointFile& record) {
  if (record.session().empty()) {
    return record.has_data_step() ? record.data_step() : record.iteration();
  }
  const auto step = MasterSession::next_step_of(record.session());
  if (step) return *step;
  SPEEDO_WARN(
      "the data go on with the mini-batch of the iteration's number, as where the cluster "
      "was in them is not known: {}",
      step.error().message);
  return record.iteration();
}

std::optional<std::uint64_t> data_step_of_state(const std::string& state_file,
                                                CheckpointFiles& files) {
  const auto found = record_of_state(state_file, files);
  return found ? std::optional(data_step_of(found->record)) : std::nullopt;
}

StatesNeeded states_needed(const MasterOptions& options) {
  if (!options.session.snapshot_workers) return StatesNeeded::kNone;
  return options.spec.deterministic ? StatesNeeded::kAll : StatesNeeded::kWhatIsLeft;
}

void go_on_from(SavedCheckpoint saved, MasterOptions& options) {
  options.session.start_iteration = saved.record.iteration();
  // A session has its own.
  if (saved.record.session().empty()) options.session.first_step = data_step_of(saved.record);
  options.session.training = training_of(saved.record);
  options.initial_session = saved.record.session();
  options.given_start.clear();
  options.start_fault.reset();
  options.initial_weights = std::make_shared<caffe::NetParameter>(std::move(saved.model));
  options.initial_state = std::make_shared<caffe::SolverState>(std::move(saved.state));
  if (options.session.snapshot_workers) {
    options.initial_states = std::move(saved.workers);
  } else if (saved.workers.count != 0) {
    SPEEDO_INFO("the checkpoint has the states of {}, which begin anew without --snapshot-workers",
                count_workers(saved.workers.count));
  }
}

void go_on_from_instead(std::optional<SavedCheckpoint> saved, const MasterOptions& before,
                        MasterOptions& options) {
  options.session.start_iteration = before.session.start_iteration;
  options.session.first_step = before.session.first_step;
  options.session.training = before.session.training;
  options.initial_session = before.initial_session;
  options.initial_weights = before.initial_weights;
  options.initial_state = before.initial_state;
  options.initial_states = before.initial_states;
  options.given_start = before.given_start;
  options.start_fault = before.start_fault;
  if (saved) go_on_from(std::move(*saved), options);
}

std::optional<FoundRecord> newest_record(const std::string& prefix, const std::string& job) {
  const auto training = read_training_file(training_file(prefix, job));
  for (FoundRecord& found : find_records(prefix)) {
    const bool is_of_training = !training || training_of(found.record) == *training;
    if (found.record.job() == job && is_of_training) return std::move(found);
  }
  return std::nullopt;
}

std::string way_on(const std::string& prefix, const std::string& job, bool by_name) {
  const auto newest = newest_record(prefix, job);
  if (!newest) return "; there is no checkpoint file of this training to go on from";
  if (by_name) {
    return fmt::format("; --resume='{}' goes on from the newest checkpoint file",
                       newest->path.string());
  }
  return fmt::format("; --resume=auto goes on from '{}', its newest checkpoint file",
                     newest->path.string());
}

}  // namespace speedo
