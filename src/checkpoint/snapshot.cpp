#include "checkpoint/snapshot.hpp"

#include "base/log.hpp"
#include "base/write_fault.hpp"
#include "checkpoint/checkpoint_file.hpp"

namespace speedo {

namespace {

// As new_suffix() has it, of a master, whose term is a time in microseconds.
constexpr const char* kLongestRank = "9999999999999999";

}  // namespace

SnapshotWriter::SnapshotWriter(const caffe::SolverParameter& solver, CheckpointFiles& files)
    : disk_(files),
      prefix_(solver.snapshot_prefix()),
      format_(solver.snapshot_format()),
      last_iteration_(solver.max_iter()) {}

Result<void> SnapshotWriter::check_writable() const {
  const std::string state = files(last_iteration_).state.substr(prefix_.size());
  auto checked = disk_.check_writable(prefix_, state + new_suffix_of({}) + kLongestRank);
  if (checked || waiting_may_help(checked.error())) return checked;
  return Error{checked.error().code,
               checked.error().message + "; a snapshot's file has that name until it is complete: "
                                         "shorten the last part of snapshot_prefix"};
}

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
