#include "main/snapshot.hpp"

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "data/model_files.hpp"

namespace speedo {

SnapshotWriter::SnapshotWriter(const caffe::SolverParameter& solver)
    : prefix_(solver.snapshot_prefix()), format_(solver.snapshot_format()) {}

Result<void> SnapshotWriter::check_writable() const { return check_prefix_writable(prefix_); }

Result<void> SnapshotWriter::write(std::int64_t iteration, const caffe::NetParameter& model,
                                   caffe::SolverState& state) {
  const bool hdf5 = format_ == caffe::SolverParameter::HDF5;
  const std::string stem = prefix_ + "_iter_" + std::to_string(iteration);
  const std::string model_file = stem + ".caffemodel" + (hdf5 ? ".h5" : "");
  const std::string state_file = stem + ".solverstate" + (hdf5 ? ".h5" : "");
  const char* format = hdf5 ? "HDF5" : "binary proto";
  SPEEDO_INFO("Snapshotting to {} file {}", format, model_file);
  SPEEDO_TRY(write_model(model_file, model, format_));
  state.set_learned_net(model_file);
  SPEEDO_INFO("Snapshotting solver state to {} file {}", format, state_file);
  SPEEDO_TRY(write_solver_state(state_file, state, format_));
  last_model_ = model_file;
  return {};
}

}  // namespace speedo
