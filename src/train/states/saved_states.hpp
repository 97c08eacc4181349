#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/update.hpp>

#include "train/states/worker_state.hpp"

namespace caffe {
class SolverParameter;
}  // namespace caffe

namespace speedo {

// The workers' states that a checkpoint has, in the order of their seats. They are read one at a
// time, together they may be larger than memory; one that is damaged or gone is an error then.
struct SavedStates {
  std::size_t count = 0;
  std::function<Result<StateOfWorker>(std::size_t)> read;
};

// What the states must be of.
struct StateOwner {
  Digest model;
  std::string solver_type;
  std::vector<UpdateSpec> stages;
  std::uint64_t workers = 1;   // among whom data are dealt that a state says no place in
  bool offset_shards = false;  // each has a place of its own in the data
  bool needs_all = false;      // one that is lost is an error
  // By stage, whether contributions are added one by one: what several workers have left out is
  // then contributed whole by fewer, not its mean. Empty: they are averaged.
  std::vector<bool> adds_residuals = {};
};
// Whether it says that a state is damaged, another's or gone: it will not be there another time.
bool is_state_lost(const Error& error);
// Error: kMismatch, naming both sides.
Result<void> check_owner(const record::WorkerState& head, const StateOwner& owner);
// Whether its arrays are those of a worker in its stage, of a net of `arena` floats. Errors:
// kMismatch; those of UpdateRule::history_count(). Requires: check_owner() found nothing.
Result<void> check_sizes(const record::WorkerState& head, const std::vector<UpdateSpec>& stages,
                         const caffe::SolverParameter& solver, std::uint64_t arena);

// Arrays of the weights' length that a run of the stage changes of what its worker has alone: kept
// as they were before it, where snapshots hold them. Errors: those of UpdateRule::history_count().
Result<std::uint64_t> arrays_before_run(const UpdateSpec& stage,
                                        const caffe::SolverParameter& solver);
// Arrays of the weights' length that a worker has alone in the stage of this number, counted from
// 0, with what the codecs of stages before it may have left, and histories for stages after it.
// Errors: those of UpdateRule::history_count().
Result<std::uint64_t> arrays_in_stage(const std::vector<UpdateSpec>& stages, std::size_t number,
                                      const caffe::SolverParameter& solver);
// The same in the stage where it has the most; 0: nothing.
Result<std::uint64_t> arrays_of_a_worker(const std::vector<UpdateSpec>& stages,
                                         const caffe::SolverParameter& solver);

// What a job loses of what its workers have alone that goes on from the store, which has nothing of
// it, or from a checkpoint file without states; empty: they have nothing alone.
enum class WithoutStates { kStore, kFile };
std::string lost_without_states(WithoutStates what, std::uint64_t arrays_of_a_worker,
                                bool deterministic);

// How many seats a job that starts with so many workers has for so many states.
std::uint64_t seats_for(std::size_t states, std::uint64_t workers);

// Puts the states where the workers of a master of this term find them. With fewer seats than
// states each has the mean of its share (states_at()); whoever finds no seat begins as the paper's
// Algorithm 1 does: at the centre, with histories of zeros. So does who has a seat of which all
// states are lost, which a warning names; with offset_shards it gets a place in the data that no
// other seat has. Errors: those of check_owner(), with the remedy; of reading, also of a lost state
// if all are needed; of the store.
Result<void> deal_states(const SavedStates& states, std::uint64_t seats, std::uint64_t term,
                         const StateOwner& owner, RecordStore& store);

}  // namespace speedo
