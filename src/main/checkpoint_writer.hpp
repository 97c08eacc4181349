#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>

#include "actors/node.hpp"
#include "caffe.pb.h"
#include "main/rotation.hpp"
#include "main/snapshot.hpp"

namespace speedo {

// Writes a cluster's checkpoints: Caffe's two files, then the record that makes them a checkpoint,
// then removes older ones. After a crash between any two steps the newest checkpoint is whole: this
// one or the one before, even if both are of the same iteration.
// Thread safety: all methods from any thread.
class CheckpointWriter {
 public:
  CheckpointWriter(const caffe::SolverParameter& solver, std::string job, RotationRules rules);

  // Error: kCannotWrite.
  Result<void> check_writable() const { return files_.check_writable(); }
  // Errors: kCannotWrite, and those of reading back what was written.
  Result<void> write(const SnapshotParts& parts);
  // The result of a test; it may come before the checkpoint of its iteration or after.
  void on_tested(std::uint64_t iteration, const TestScores& scores);
  std::string last_model() const;  // empty: none yet

 private:
  struct Score {
    float accuracy, loss;  // NaN: unknown
  };
  Result<void> write_files(const SnapshotParts& parts, record::CheckpointFile& record);
  void put_score(const Score& score, record::CheckpointFile& record) const;
  void rotate(const record::CheckpointFile& newest) const;

  const std::string prefix_;
  const std::int64_t seed_;
  const std::string job_;
  const RotationRules rules_;
  mutable std::mutex mutex_;
  SnapshotWriter files_;
  std::map<std::uint64_t, Score> scores_;  // of tests since the last checkpoint
  std::uint64_t last_iteration_ = 0;       // of the last checkpoint
};

}  // namespace speedo
