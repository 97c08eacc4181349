#include "train/states/saved_states.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/core/update_rule.hpp>
#include <speedo/train/trainer.hpp>

#include "base/log.hpp"
#include "train/job/job_solver.hpp"

namespace speedo {
namespace {

// One that is of another net, solver or schedule: so are the others, of what the user asks for now.
Result<void> check_asked(const record::WorkerState& head, const StateOwner& owner) {
  auto checked = check_owner(head, owner);
  if (checked) return checked;
  Error error = std::move(checked).error();
  error.message +=
      ": use the net, solver and schedule that it was written with, or leave --snapshot-workers "
      "out to go on without the workers' states";
  return error;
}

// The states of one seat; of some that are not alike, those that are as the first is.
Result<std::vector<StateOfWorker>> read_share(const SavedStates& states, std::uint64_t seat,
                                              std::uint64_t seats, const StateOwner& owner) {
  std::vector<StateOfWorker> share;
  for (const std::size_t each : states_at(seat, seats, states.count)) {
    auto state = states.read(each);
    if (!state && (owner.needs_all || !is_state_lost(state.error()))) return state.error();
    if (!state) {
      SPEEDO_WARN(
          "going on without the state of a worker: {}; --resume=FILE.speedo takes an "
          "earlier checkpoint",
          state.error().message);
      continue;
    }
    SPEEDO_TRY(check_asked(state->head, owner));
    if (share.empty() || are_alike(share.front().head, state->head)) {
      share.push_back(std::move(*state));
    } else {
      SPEEDO_WARN(
          "the state of worker {} is left out of the mean for seat {}: it is of another "
          "form than that of worker {}",
          state->head.worker(), seat, share.front().head.worker());
    }
  }
  return share;
}

// What a worker has alone in a stage, in arrays of the weights' length.
struct ArraysOfState {
  std::uint64_t weights = 0, histories = 0, residual = 0;
};

// Those that its runs change, without what a codec has left. `histories`: of the solver.
ArraysOfState own_arrays(const UpdateSpec& stage, std::size_t histories) {
  ArraysOfState arrays;
  if (is_elastic(stage.kind)) arrays.weights = 1;
  if (keeps_own_histories(stage)) arrays.histories = histories;
  return arrays;
}

Result<ArraysOfState> parts_in_stage(const std::vector<UpdateSpec>& stages, std::size_t number,
                                     const caffe::SolverParameter& solver) {
  const UpdateSpec& stage = stages[number];
  SPEEDO_ASSIGN(const std::size_t histories, UpdateRule::history_count(solver_of(solver, stage)));
  ArraysOfState arrays = own_arrays(stage, histories);
  if (may_hold_histories(stages, number)) arrays.histories = histories;
  if (may_hold_residual(stages, number)) {
    arrays.residual = averages_histories(stage) ? 1 + histories : 1;
  }
  return arrays;
}

// Where a worker was in its data; its number says so where the state does not.
DataStart place_of(const record::WorkerState& head, const StateOwner& owner) {
  if (head.has_data_parts()) return {head.data_part(), head.data_parts()};
  return {head.worker() % owner.workers, owner.workers};
}

// The first of so many parts of the data that none of these has; `parts`: each is another's.
std::uint64_t free_part(const std::vector<record::WorkerState>& heads, std::uint64_t parts,
                        const StateOwner& owner) {
  std::uint64_t part = 0;
  const auto has_it = [&](const record::WorkerState& head) {
    return place_of(head, owner) == DataStart{part, parts};
  };
  while (part < parts && std::ranges::any_of(heads, has_it)) ++part;
  return part;
}

// As `like`, but at the centre, with histories of zeros.
StateOfWorker fresh_state(record::WorkerState like) {
  like.set_weights(0);
  like.set_updates_held(0);
  const std::uint64_t values = like.histories() + like.residual();
  return {std::move(like), std::vector<float>(static_cast<std::size_t>(values))};
}

// Where workers have places in the data of their own, those of empty seats get one.
Result<void> place_empty_seats(const std::vector<std::uint64_t>& empty,
                               std::vector<record::WorkerState> heads, std::uint64_t term,
                               const StateOwner& owner, RecordStore& store) {
  if (!owner.offset_shards || heads.empty()) return {};
  const std::uint64_t parts = place_of(heads.front(), owner).parts;
  for (const std::uint64_t seat : empty) {
    const std::uint64_t part = free_part(heads, parts, owner);
    if (part == parts) return {};
    StateOfWorker fresh = fresh_state(heads.front());
    fresh.head.set_worker(seat);
    fresh.head.set_data_part(part);
    fresh.head.set_data_parts(parts);
    SPEEDO_TRY(put_state(store, seat_key(term, seat), fresh));
    heads.push_back(fresh.head);
  }
  return {};
}

}  // namespace

bool is_state_lost(const Error& error) {
  return error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kMismatch ||
         error.code == ErrorCode::kNotFound;
}

Result<void> check_owner(const record::WorkerState& head, const StateOwner& owner) {
  const Digest model{head.model_high(), head.model_low()};
  if (model != owner.model) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the state of worker {} is of model {}, this net is {}", head.worker(),
                             to_string(model), to_string(owner.model))};
  }
  if (!UpdateRule::have_same_histories(head.solver_type(), owner.solver_type)) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the state of worker {} is of a solver of type \"{}\", and this one's "
                             "is \"{}\", and histories of one are not those of the other",
                             head.worker(), head.solver_type(), owner.solver_type)};
  }
  const bool has_stage = head.stage() < owner.stages.size();
  if (!has_stage || static_cast<std::uint32_t>(owner.stages[head.stage()].kind) != head.kind()) {
    return Error{
        ErrorCode::kMismatch,
        fmt::format(
            "the state of worker {} is of stage {}, which {}", head.worker(), head.stage() + 1,
            has_stage ? "contributes something else in this job" : "this job does not have")};
  }
  return {};
}

// A worker that has not trained in an elastic stage yet has no weights of its own.
Result<void> check_sizes(const record::WorkerState& head, const std::vector<UpdateSpec>& stages,
                         const caffe::SolverParameter& solver, std::uint64_t arena) {
  SPEEDO_ASSIGN(const ArraysOfState arrays, parts_in_stage(stages, head.stage(), solver));
  const bool has_its_weights = head.weights() == 0 || head.weights() == arrays.weights * arena;
  if (has_its_weights && head.histories() == arrays.histories * arena &&
      head.residual() == arrays.residual * arena) {
    return {};
  }
  return Error{
      ErrorCode::kMismatch,
      fmt::format("the state of worker {} has {} floats of weights, {} of histories and {} "
                  "of a codec's residual; in stage {} a worker has {}, {} and {}",
                  head.worker(), head.weights(), head.histories(), head.residual(),
                  head.stage() + 1, arrays.weights * arena, arrays.histories * arena,
                  arrays.residual * arena)};
}

Result<std::uint64_t> arrays_before_run(const UpdateSpec& stage,
                                        const caffe::SolverParameter& solver) {
  SPEEDO_ASSIGN(const std::size_t histories, UpdateRule::history_count(solver_of(solver, stage)));
  const ArraysOfState arrays = own_arrays(stage, histories);
  return arrays.weights + arrays.histories;
}

Result<std::uint64_t> arrays_in_stage(const std::vector<UpdateSpec>& stages, std::size_t number,
                                      const caffe::SolverParameter& solver) {
  SPEEDO_ASSIGN(const ArraysOfState arrays, parts_in_stage(stages, number, solver));
  return arrays.weights + arrays.histories + arrays.residual;
}

Result<std::uint64_t> arrays_of_a_worker(const std::vector<UpdateSpec>& stages,
                                         const caffe::SolverParameter& solver) {
  std::uint64_t most = 0;
  for (std::size_t number = 0; number < stages.size(); ++number) {
    SPEEDO_ASSIGN(const std::uint64_t arrays, arrays_in_stage(stages, number, solver));
    most = std::max(most, arrays);
  }
  return most;
}

std::string lost_without_states(WithoutStates what, std::uint64_t arrays_of_a_worker,
                                bool deterministic) {
  if (arrays_of_a_worker == 0) return {};
  const bool from_store = what == WithoutStates::kStore;
  std::string text =
      from_store ? "going on from the store, which has no states of workers: those that join anew "
                   "begin without what they had alone, those that waited for this master keep "
                   "theirs (see --snapshot-workers)"
                 : "the checkpoint has no states of workers, which begin without what they had "
                   "alone: it was written without --snapshot-workers, or none had given its own";
  if (!deterministic) return text;
  text += "; training may not come to the bits that it would have had (--deterministic)";
  return from_store ? text + ": only a checkpoint file has the states" : text;
}

std::uint64_t seats_for(std::size_t states, std::uint64_t workers) {
  return std::min<std::uint64_t>(states, workers);
}

Result<void> deal_states(const SavedStates& states, std::uint64_t seats, std::uint64_t term,
                         const StateOwner& owner, RecordStore& store) {
  std::vector<record::WorkerState> heads;
  std::vector<std::uint64_t> empty;
  for (std::uint64_t seat = 0; seat < seats; ++seat) {
    SPEEDO_ASSIGN(std::vector<StateOfWorker> share, read_share(states, seat, seats, owner));
    if (share.empty()) {
      empty.push_back(seat);
      continue;
    }
    const std::size_t stage = share.front().head.stage();
    const bool adds = stage < owner.adds_residuals.size() && owner.adds_residuals[stage];
    const StateOfWorker mean = mean_of(std::move(share), adds);
    SPEEDO_TRY(put_state(store, seat_key(term, seat), mean));
    heads.push_back(mean.head);
  }
  return place_empty_seats(empty, std::move(heads), term, owner, store);
}

}  // namespace speedo
