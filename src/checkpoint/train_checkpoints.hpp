#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/training_id.hpp>

#include "caffe.pb.h"
#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/resume.hpp"

namespace speedo {

// The checkpoints of training in one process, the same as a cluster's. Thread safety: one thread at
// a time.
class TrainCheckpoints {
 public:
  // `solver` with the values that training uses; `is_stopping` tells whether training was asked to
  // stop.
  TrainCheckpoints(const caffe::SolverParameter& solver, RotationRules rules,
                   std::function<bool()> is_stopping);

  // Error: kCannotWrite.
  Result<void> check_writable() const;
  // What the checkpoints belong to; before the first is read or written.
  void set_owner(CheckpointOwner owner);
  // What --resume says ("auto" or a file); nothing for "auto" without a checkpoint of the last
  // training of this prefix. Errors: those of load_checkpoint().
  Result<std::optional<SavedCheckpoint>> find(const std::string& resume) const;
  // Which training the checkpoints are of; a new one if it is not known. `steps_ahead`: of the
  // data, beyond one for each iteration, see Solver::read_from_step. Before the first write.
  // Error: kCannotWrite.
  Result<void> begin(TrainingId training, std::uint64_t steps_ahead = 0);

  // One that cannot be written on the way is warned of, and training goes on. The last one is tried
  // again until there is room or training is asked to stop. Errors: kCannotWrite, kNotFinite.
  Result<void> write(std::int64_t iteration, const caffe::NetParameter& model,
                     caffe::SolverState& state);
  // Takes note of the solver's newest test. Whether it was not seen before.
  bool look_at_tests(const Solver& solver);
  // Why there is no checkpoint of this iteration, though it was time for one.
  std::optional<Error> failure_at(std::int64_t iteration) const;
  std::string last_model() const;  // empty: none yet

 private:
  const caffe::SolverParameter solver_;
  const RotationRules rules_;
  const std::function<bool()> is_stopping_;
  CheckpointOwner owner_;
  std::optional<CheckpointWriter> writer_;
  std::uint64_t steps_ahead_ = 0;  // the difference may wrap around
  std::int64_t tested_iteration_ = -1;
  std::int64_t failed_iteration_ = -1;
  std::optional<Error> failure_;
};

// The seed that the job's last training with this prefix began with, if a checkpoint has it; of a
// training that is not known, that of the job's newest checkpoint.
std::optional<std::int64_t> seed_of_newest(const std::string& prefix, const std::string& job);
// The same of a .speedo file's training. What is wrong with the file its loading tells.
std::optional<std::int64_t> seed_of_record(const std::string& record_file);

}  // namespace speedo
