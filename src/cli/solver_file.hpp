#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// A solver prototxt that was read, and its folder.
struct SolverFile {
  caffe::SolverParameter solver;
  std::filesystem::path base;
};
// Error: kConfig, also for a file that does not exist.
Result<SolverFile> load_solver(const std::string& path);

// Values that flags put in place of the prototxt's.
struct SolverOverrides {
  std::optional<std::int64_t> max_iter{}, seed{}, test_interval{}, snapshot_interval{};
  std::optional<double> lr{}, momentum{}, weight_decay{};
};
void apply(const SolverOverrides& overrides, caffe::SolverParameter& solver);

// The net that is trained. Requires: it is inline (inline_nets).
const caffe::NetParameter& train_net_of(const caffe::SolverParameter& solver);

// Makes `batch` the number of images between two updates, by iter_size. Requires: the train net is
// inline (inline_nets). Error: kUsage if the net's batch_size does not divide it.
Result<void> set_effective_batch(std::int64_t batch, caffe::SolverParameter& solver);

// Weights to start from: one file or several, comma-separated, .caffemodel or .h5. A layer that is
// in several has the values of the last. Errors: kNotFound, kData.
Result<caffe::NetParameter> read_weights(const std::string& files);
// The files that the solver begins with, as read_weights() takes them.
std::string weights_of(const caffe::SolverParameter& solver);

// A .solverstate and the weights that belong to it.
struct SavedState {
  caffe::SolverState state;
  caffe::NetParameter model;
};
// The model is tried where the state says (from the working directory), then beside the state.
// Errors: kUsage for a .caffemodel; kNotFound, kData.
Result<SavedState> read_saved_state(const std::string& file);
bool is_model_file(const std::string& file);  // by its name

}  // namespace speedo
