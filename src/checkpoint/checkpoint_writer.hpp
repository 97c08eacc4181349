#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/training_id.hpp>

#include "caffe.pb.h"
#include "checkpoint/rotation.hpp"
#include "checkpoint/snapshot.hpp"
#include "checkpoint/snapshot_rescue.hpp"
#include "train/job/master_options.hpp"

namespace speedo {

// Writes a cluster's checkpoints: Caffe's two files, then the record that makes them a checkpoint,
// then removes older ones. After a crash between any two steps the newest checkpoint is whole: this
// one or the one before, even if both are of the same iteration; and what several writers of a
// training write at the same time is never mixed. Files of other trainings under the same prefix
// stay, but for those of an iteration that this one writes and what a killed writer has not
// finished. One that fails leaves what it has written until the next one.
// Thread safety: all methods from any thread.
class CheckpointWriter {
 public:
  // `files` outlive it.
  CheckpointWriter(const caffe::SolverParameter& solver, std::string job, RotationRules rules,
                   CheckpointFiles& files = disk_files());

  // Which training the checkpoints are of; before the first write(). Leaves its name beside them
  // (checkpoint/training_file), removes what processes that were killed left of theirs, and says
  // what is there of other trainings. Error: kCannotWrite.
  Result<void> begin(const TrainingId& training);
  // Error: kCannotWrite.
  Result<void> check_writable() const { return files_.check_writable(); }
  // Where it does not fit beside all that the rules keep, they go on with one fewer. Errors:
  // kCannotWrite; kNotFinite for weights that are not, of which nothing is written;
  // kSuperseded where a later one has written this iteration; those of reading back what was
  // written.
  Result<void> write(const SnapshotParts& parts);
  // The same; one that cannot be written to its place goes to a folder for temporary files, which
  // the error names (checkpoint/snapshot_rescue). One thread at a time. Errors: those of write().
  Result<void> write_or_rescue(const SnapshotParts& parts);
  // The result of a test; it may come before the checkpoint of its iteration or after.
  void on_tested(std::uint64_t iteration, const TestScores& scores);
  std::string last_model() const;  // empty: none yet

 private:
  struct Score {
    float accuracy, loss;  // NaN: unknown
  };
  Result<void> check_earlier(const record::CheckpointFile& there,
                             const record::CheckpointFile& record) const;
  Result<void> check_place(const record::CheckpointFile& record) const;
  Result<void> write_files(const SnapshotParts& parts, record::CheckpointFile record);
  Result<void> write_parts(const SnapshotParts& parts, record::CheckpointFile& record);
  Error keep_weights(const std::string& model, Error failed);
  Result<void> put_in_place(const record::CheckpointFile& record);
  Result<void> write_states(const SnapshotParts& parts, const std::string& suffix,
                            record::CheckpointFile& record);
  // Apart from this writer's own checkpoints, but of the same training.
  Result<void> write_elsewhere(const std::string& prefix, const SnapshotParts& parts) const;
  void put_score(const Score& score, record::CheckpointFile& record) const;
  void rotate(const record::CheckpointFile& newest) const;
  bool make_room(const record::CheckpointFile& next) const;
  void remove_unnamed();
  bool lacks_unnamed() const;
  void remove_unfinished(const std::vector<FoundRecord>& records);
  void remove_left(const std::vector<std::filesystem::path>& files, std::chrono::hours age_min);
  std::uint64_t next_sequence();

  const caffe::SolverParameter solver_;
  const std::string prefix_;
  const std::string job_;
  const RotationRules rules_;
  CheckpointFiles& disk_;
  mutable std::mutex mutex_;
  SnapshotWriter files_;
  SnapshotRescue rescue_;
  TrainingId training_;
  std::uint64_t sequence_ = 0;             // the highest that is known of
  std::uint64_t rank_min_ = 0;             // above what its training had when this began
  bool warned_of_other_ = false;
  std::map<std::uint64_t, Score> scores_;  // of tests since the last checkpoint
  std::uint64_t last_iteration_ = 0, last_rank_ = 0;  // of the last checkpoint
  std::uint64_t unnamed_iteration_ = 0;
  std::vector<std::string> unnamed_;       // files of this iteration that no record names
  std::shared_ptr<const void> held_;       // the first of them
};

}  // namespace speedo
