#include "cli/solver_file.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/file.hpp>
#include <speedo/base/remote_files.hpp>
#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "base/read_found.hpp"
#include "cli/net_inputs.hpp"
#include "core/prototxt.hpp"
#include "data/model_files.hpp"

namespace speedo {

namespace {

// The batch_size of the layer that reads the training data; empty if no layer says one.
std::optional<std::int64_t> train_batch_size(const caffe::NetParameter& net) {
  for (const caffe::LayerParameter& layer : net.layer()) {
    bool only_tests = false;
    for (const caffe::NetStateRule& rule : layer.include()) {
      only_tests = only_tests || (rule.has_phase() && rule.phase() == caffe::TEST);
    }
    if (only_tests) continue;
    if (layer.has_data_param()) return layer.data_param().batch_size();
    if (layer.has_hdf5_data_param()) return layer.hdf5_data_param().batch_size();
    if (layer.has_image_data_param()) return layer.image_data_param().batch_size();
    if (layer.has_window_data_param()) return layer.window_data_param().batch_size();
    if (layer.has_memory_data_param()) return layer.memory_data_param().batch_size();
  }
  return std::nullopt;
}

bool ends_with_any(const std::string& text, std::initializer_list<const char*> ends) {
  for (const char* end : ends) {
    if (text.ends_with(end)) return true;
  }
  return false;
}

// A solver's own is above 0 where it tests at all: one that no training reaches leaves the test at
// the end.
void set_test_interval(std::int64_t interval, caffe::SolverParameter& solver) {
  if (interval == 0 && solver.test_iter_size() > 0) {
    interval = std::numeric_limits<std::int32_t>::max();
    solver.set_test_initialization(false);
  }
  solver.set_test_interval(static_cast<std::int32_t>(interval));
}

}  // namespace

Result<SolverFile> load_solver(const std::string& path) {
  // Snapshots of a solver at a URI belong into this folder, not beside its copy in the cache.
  SPEEDO_ASSIGN(caffe::SolverParameter solver,
                read_found(path, {}, [&](const std::filesystem::path& file) {
                  return read_solver_prototxt(file, is_uri(path) ? file.filename() : file);
                }));
  return SolverFile{std::move(solver), std::filesystem::path(path).parent_path()};
}

void apply(const SolverOverrides& overrides, caffe::SolverParameter& solver) {
  if (overrides.max_iter) solver.set_max_iter(static_cast<std::int32_t>(*overrides.max_iter));
  if (overrides.seed) solver.set_random_seed(*overrides.seed);
  if (overrides.test_interval) set_test_interval(*overrides.test_interval, solver);
  if (overrides.snapshot_interval) {
    solver.set_snapshot(static_cast<std::int32_t>(*overrides.snapshot_interval));
  }
  if (overrides.lr) solver.set_base_lr(static_cast<float>(*overrides.lr));
  if (overrides.momentum) solver.set_momentum(static_cast<float>(*overrides.momentum));
  if (overrides.weight_decay) solver.set_weight_decay(static_cast<float>(*overrides.weight_decay));
}

const caffe::NetParameter& train_net_of(const caffe::SolverParameter& solver) {
  return solver.has_train_net_param() ? solver.train_net_param() : solver.net_param();
}

Result<void> set_effective_batch(std::int64_t batch, caffe::SolverParameter& solver) {
  const auto size = train_batch_size(train_net_of(solver));
  if (!size || *size < 1) {
    return Error{ErrorCode::kUsage, "--batch " + std::to_string(batch) +
                                        ": the net's data layer has no batch_size to multiply"};
  }
  if (batch % *size != 0) {
    return Error{ErrorCode::kUsage, "--batch " + std::to_string(batch) +
                                        " is no multiple of the net's batch_size " +
                                        std::to_string(*size)};
  }
  solver.set_iter_size(static_cast<std::int32_t>(batch / *size));
  return {};
}

Result<caffe::NetParameter> read_weights(const std::string& files) {
  caffe::NetParameter all;
  for (const std::string& name : split_at_commas(files)) {
    if (ends_with_any(name, {".solverstate", ".solverstate.h5"})) {
      return Error{ErrorCode::kUsage, "--weights " + shown_name(name) +
                                          ": a solver state is given with --snapshot, which finds "
                                          "its weights by itself"};
    }
    SPEEDO_ASSIGN(caffe::NetParameter net, read_found(name, {}, read_model));
    for (caffe::LayerParameter& layer : *net.mutable_layer()) *all.add_layer() = std::move(layer);
    if (all.name().empty()) all.set_name(net.name());
  }
  return all;
}

std::string weights_of(const caffe::SolverParameter& solver) {
  return fmt::format("{}", fmt::join(solver.weights(), ","));
}

bool is_model_file(const std::string& file) {
  return ends_with_any(file, {".caffemodel", ".caffemodel.h5"});
}

Result<SavedState> read_saved_state(const std::string& file) {
  if (is_model_file(file)) {
    return Error{
        ErrorCode::kUsage,
        "--snapshot " + shown_name(file) +
            ": takes a .solverstate; give a .caffemodel with --weights"};
  }
  SPEEDO_ASSIGN(caffe::SolverState state, read_solver_state(file));
  if (!state.has_learned_net()) {
    return Error{ErrorCode::kData, "'" + file + "' does not say which .caffemodel belongs to it"};
  }
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::filesystem::path model_file = resolve_path(state.learned_net(), folder);
  // A snapshot that was moved: its two files still lie side by side.
  const std::filesystem::path beside = folder / model_file.filename();
  std::error_code code;
  if (!std::filesystem::exists(model_file, code) && std::filesystem::exists(beside, code)) {
    model_file = beside;
  }
  SPEEDO_ASSIGN(caffe::NetParameter model, read_model(model_file));
  return SavedState{std::move(state), std::move(model)};
}

}  // namespace speedo
