#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"
#include "checkpoint/checkpoint_files.hpp"

namespace speedo {

// Writes snapshots as Caffe names them: PREFIX_iter_N.caffemodel and .solverstate, with .h5 behind
// if snapshot_format says so. Each file is there whole or not at all. Thread safety: one thread at
// a time.
class SnapshotWriter {
 public:
  // `files` outlive it.
  explicit SnapshotWriter(const caffe::SolverParameter& solver,
                          CheckpointFiles& files = disk_files());

  // Fails now rather than after hours: the folder must exist and be writable, and the
  // names must not be too long for it. Error: kCannotWrite.
  Result<void> check_writable() const;
  struct Files {
    std::string model, state;
  };
  Files files(std::int64_t iteration) const;
  // Sets state.learned_net. `suffix`: behind the files' names, until they are renamed. Error:
  // kCannotWrite; the model may be there without its state then.
  Result<void> write(std::int64_t iteration, const caffe::NetParameter& model,
                     caffe::SolverState& state, const std::string& suffix = "");
  const std::string& last_model() const { return last_model_; }  // empty: none yet
  // What the last write() has written, if it failed, too.
  const std::vector<std::string>& written() const { return written_; }

 private:
  CheckpointFiles& disk_;
  std::string prefix_;
  caffe::SolverParameter::SnapshotFormat format_;
  std::int64_t last_iteration_;  // of training
  std::string last_model_;
  std::vector<std::string> written_;
};

}  // namespace speedo
