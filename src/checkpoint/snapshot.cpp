#include "checkpoint/snapshot.hpp"

#include "base/log.hpp"

namespace speedo {

SnapshotWriter::SnapshotWriter(const caffe::SolverParameter& solver, CheckpointFiles& files)
    : disk_(files), prefix_(solver.snapshot_prefix()), format_(solver.snapshot_format()) {}

Result<void> SnapshotWriter::check_writable() const { return disk_.check_writable(prefix_); }

SnapshotWriter::Files SnapshotWriter::files(std::int64_t iteration) const {
  const std::string stem = prefix_ + "_iter_" + std::to_string(iteration);
  const char* end = format_ == caffe::SolverParameter::HDF5 ? ".h5" : "";
  return {stem + ".caffemodel" + end, stem + ".solverstate" + end};
}

Result<void> SnapshotWriter::write(std::int64_t iteration, const caffe::NetParameter& model,
                                   caffe::SolverState& state, const std::string& suffix) {
  const Files names = files(iteration);
  const char* format = format_ == caffe::SolverParameter::HDF5 ? "HDF5" : "binary proto";
  SPEEDO_INFO("Snapshotting to {} file {}", format, names.model);
  written_.clear();
  SPEEDO_TRY(disk_.write_model(names.model + suffix, model, format_));
  written_.push_back(names.model + suffix);
  state.set_learned_net(names.model);
  SPEEDO_INFO("Snapshotting solver state to {} file {}", format, names.state);
  SPEEDO_TRY(disk_.write_state(names.state + suffix, state, format_));
  written_.push_back(names.state + suffix);
  last_model_ = names.model;
  return {};
}

}  // namespace speedo
