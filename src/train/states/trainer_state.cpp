// What a worker has alone: given to a snapshot, and taken from one.

#include <span>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

#include "base/log.hpp"
#include "train/states/worker_state.hpp"
#include "train/trainer/trainer_engine.hpp"

namespace speedo {

record::WorkerState TrainerEngine::state_head() const {
  const auto arena = static_cast<std::uint64_t>(learner_->layout().element_count());
  record::WorkerState head;
  head.set_model_high(model_.high);
  head.set_model_low(model_.low);
  head.set_solver_type(solver_.type());
  head.set_stage(*stage_);
  head.set_kind(static_cast<std::uint32_t>(spec().kind));
  if (update_->has_own_weights()) head.set_weights(arena);
  if (rule_ && may_hold_histories(incarnation_.job.stages, *stage_)) {
    head.set_histories(arena * rule_->histories().size());
  }
  if (may_hold_residual(incarnation_.job.stages, *stage_)) {
    head.set_residual(update_->contribution_count());
  }
  head.set_updates_held(updates_held_);
  head.set_steps_done(steps_done_);
  if (incarnation_.job.offset_shards) {
    const DataStart start = start_of(incarnation_);
    head.set_data_part(start.part);
    head.set_data_parts(start.parts);
  }
  return head;
}

// What a run changes of its state, but for what the codec takes care of.
std::vector<const Arena*> TrainerEngine::arrays_before_run() {
  std::vector<const Arena*> arrays;
  if (!incarnation_.job.snapshot_workers) return arrays;
  if (is_elastic(spec().kind)) arrays.push_back(&learner_->weights());
  if (!keeps_own_histories(spec())) return arrays;
  for (const Arena* history : rule_->histories()) arrays.push_back(history);
  return arrays;
}

// A stage's runs whose worker has no histories of its own change none, where they are gradients, or
// begin without what was there.
void TrainerEngine::download_own(StateOfWorker& state, bool is_before) {
  Device& device = learner_->backend().device();
  if (is_before) {
    before_run_.download(state.values);
    if (rule_in_use()) return;
  } else if (state.head.weights() != 0) {
    device.download(state.weights(), learner_->weights().data());
  }
  std::span<float> histories = state.histories();
  for (const Arena* history : histories.empty() ? std::vector<Arena*>{} : rule_->histories()) {
    const auto count = static_cast<std::size_t>(history->size());
    device.download(histories.first(count), history->data());
    histories = histories.subspan(count);
  }
}

Result<void> TrainerEngine::save_state(const SaveStateMessage& order) {
  if (!stage_) return Error{ErrorCode::kUnavailable, "it has not trained yet"};
  codec_.settle(order.merged_run);
  SPEEDO_TRY(update_->settle(order.merged_run, std::bit_cast<float>(order.merged_weight_bits)));
  StateOfWorker state{state_head(), {}};
  state.head.set_iteration(order.iteration);
  state.head.set_worker(incarnation_.worker.value);
  state.head.set_term(incarnation_.term);
  const bool is_before = before_run_.is_of(order.open_run);
  if (is_before) {
    state.head.set_updates_held(before_run_.counts().updates_held);
    state.head.set_steps_done(before_run_.counts().steps_done);
    if (is_elastic(spec().kind)) {
      state.head.set_weights(static_cast<std::uint64_t>(learner_->layout().element_count()));
    }
  }
  state.values.resize(static_cast<std::size_t>(state.head.weights() + state.head.histories() +
                                               state.head.residual()));
  download_own(state, is_before);
  codec_.copy_residual(state.residual());
  if (!all_finite(state.values)) {
    return Error{ErrorCode::kNotFinite, "its own weights or histories are not finite"};
  }
  return put_state(*incarnation_.store, state_key(incarnation_.term, incarnation_.worker.value),
                   state);
}

Result<StateOfWorker> TrainerEngine::read_seat(std::uint64_t seat) const {
  return get_state(*incarnation_.store, seat_key(incarnation_.term, seat), model_,
                   static_cast<std::uint64_t>(learner_->layout().element_count()));
}

// Of a state that does not say where its data began, its worker's number does. One that cannot be
// read take_seat() tells of.
Result<std::optional<TrainerEngine::Incarnation>> TrainerEngine::moved_to(
    std::uint64_t seat) const {
  std::optional<Incarnation> moved;
  if (seat == kNoSeat || !incarnation_.job.offset_shards) return moved;
  const auto state = read_seat(seat);
  if (!state && is_transient(state.error().code)) return state.error();
  if (!state) return moved;
  const record::WorkerState& head = state->head;
  const std::uint64_t workers = incarnation_.job.expected_workers;
  const DataStart start = head.has_data_parts() ? DataStart{head.data_part(), head.data_parts()}
                                                : DataStart{head.worker() % workers, workers};
  if (start == start_of(incarnation_)) return moved;
  moved = incarnation_;
  moved->start = start;
  return moved;
}

// One that is lost or of something else is no reason not to train: the worker begins as it is.
Result<void> TrainerEngine::take_seat(const TrainMessage& order) {
  auto state = read_seat(order.seat);
  if (!state && is_transient(state.error().code)) return state.error();
  if (!state) {
    SPEEDO_WARN("this worker begins without the state at seat {}: {}", order.seat,
                state.error().message);
    return {};
  }
  const record::WorkerState& head = state->head;
  const bool has_stage = head.stage() < incarnation_.job.stages.size();
  if (has_stage && stage_ != head.stage()) SPEEDO_TRY(enter_stage(head.stage()));
  if (!has_stage || !fits(head)) {
    SPEEDO_WARN("this worker begins without the state at seat {}, which is of another job or "
                "solver: stage {}, a solver of type \"{}\", {} floats",
                order.seat, head.stage(), head.solver_type(), state->values.size());
    return {};
  }
  if (head.histories() != state_head().histories()) {
    SPEEDO_WARN(
        "the state at seat {} has no solver histories for the stages to come, as another "
        "version has saved it: they begin anew there",
        order.seat);
  }
  load(*state);
  SPEEDO_INFO("goes on with the state of worker {} at iteration {} (seat {})", head.worker(),
              head.iteration(), order.seat);
  return {};
}

// Without histories that only a later stage goes on with it is another version's, and fits.
bool TrainerEngine::fits(const record::WorkerState& head) const {
  const auto arena = static_cast<std::uint64_t>(learner_->layout().element_count());
  const record::WorkerState own = state_head();
  const bool has_none = head.histories() == 0 && !keeps_own_histories(spec());
  return head.kind() == own.kind() && (has_none || head.histories() == own.histories()) &&
         (head.weights() == 0 || (head.weights() == arena && is_elastic(spec().kind))) &&
         UpdateRule::have_same_histories(head.solver_type(), own.solver_type());
}

void TrainerEngine::load(StateOfWorker& state) {
  Device& device = learner_->backend().device();
  if (state.head.weights() != 0) {
    device.upload(learner_->weights().data(), state.weights());
    update_->take_own_weights();
  }
  std::span<float> histories = state.histories();
  for (Arena* history : histories.empty() ? std::vector<Arena*>{} : rule_->histories()) {
    const auto count = static_cast<std::size_t>(history->size());
    device.upload(history->data(), histories.first(count));
    histories = histories.subspan(count);
  }
  if (state.head.residual() == state_head().residual()) {
    codec_.take_residual(state.residual());
  } else if (state.head.residual() != 0) {
    SPEEDO_WARN("what codecs had left out before, {} values, is dropped: this stage sends none of "
                "it",
                state.head.residual());
  }
  updates_held_ = state.head.updates_held();
  steps_done_ = state.head.steps_done();
  last_order_.reset();
  contributed_.reset();
  diverged_ = false;
}

}  // namespace speedo
