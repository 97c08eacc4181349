#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"
#include "checkpoint/checkpoint_file.hpp"
#include "train/job/master_options.hpp"

namespace speedo {

// What --resume says for the newest checkpoint; else it names a file.
inline constexpr const char* kResumeNewest = "auto";

// A checkpoint that was read from its three files.
struct SavedCheckpoint {
  record::CheckpointFile record;
  caffe::NetParameter model;
  caffe::SolverState state;
  SavedStates workers;  // that it has the states of; read when they are wanted
};

// The checkpoint of a .speedo file. Errors: kNotFound; kCorrupt for a truncated or damaged file;
// kMismatch for one of another net or job; kData for weights that are not finite; those of a state
// of a worker that the owner needs.
Result<SavedCheckpoint> load_checkpoint(const std::string& file, const CheckpointOwner& owner,
                                        CheckpointFiles& files = disk_files());

// The newest checkpoint of a prefix that can be gone on from, if there is one: of this training, or
// if none is known, of any, which is then named. What is newer and cannot be gone on from is warned
// of, with the reason; so are those of other trainings, nets and jobs, one line for each kind.
std::optional<SavedCheckpoint> newest_checkpoint(const std::string& prefix,
                                                 const CheckpointOwner& owner,
                                                 const std::optional<TrainingId>& training,
                                                 CheckpointFiles& files = disk_files());

// The same for a job whose store has weights of the training `stored`, if of any: of that training;
// else of the one that began last with this prefix, if that is known.
std::optional<SavedCheckpoint> newest_of_job(const std::string& prefix,
                                             const CheckpointOwner& owner,
                                             const std::optional<TrainingId>& stored,
                                             CheckpointFiles& files = disk_files());

// Whether a solver of this type can go on with a .solverstate. Caffe's file does not say what type
// it is of; the record of its checkpoint does, if it lies beside it. Error: kMismatch.
Result<void> check_state_type(const std::string& state_file, const std::string& solver_type,
                              CheckpointFiles& files = disk_files());

// The seed that the training of a .solverstate began with, if the record that the state belongs to
// lies beside it; else it is warned that there is none.
std::optional<std::int64_t> seed_of_state(const std::string& state_file,
                                          CheckpointFiles& files = disk_files());

// The step of the data that its training goes on with, one of a worker or of one process: the
// session's, else the iteration's number or what the record says instead.
std::uint64_t data_step_of(const record::CheckpointFile& record);
// The same of the record that a .solverstate belongs to, if it lies beside it.
std::optional<std::uint64_t> data_step_of_state(const std::string& state_file,
                                                CheckpointFiles& files = disk_files());

// Those of a checkpoint that a job of these options goes on from.
StatesNeeded states_needed(const MasterOptions& options);

// What a master is told that goes on from it, its solver's seed apart. The states of workers are
// taken if its snapshots are to have them.
void go_on_from(SavedCheckpoint saved, MasterOptions& options);
// The same for files that are chosen anew, or none: `options` may have been told of others before,
// `before` of none.
void go_on_from_instead(std::optional<SavedCheckpoint> saved, const MasterOptions& before,
                        MasterOptions& options);

// The newest checkpoint file of the job's last training with this prefix; of any training of the
// job if none is known.
std::optional<FoundRecord> newest_record(const std::string& prefix, const std::string& job);

// For the end of an error of a training that can be gone on with: "; --resume=auto goes on from
// FILE", or that there is no such file. `by_name`: "; --resume=FILE goes on", which needs no store
// that has the training.
std::string way_on(const std::string& prefix, const std::string& job, bool by_name = false);

}  // namespace speedo
