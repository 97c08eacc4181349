// Solver cases: twenty updates from given weights, compared with Caffe's losses, rates, weights and
// updates; then the snapshot of iteration 10 in every form and direction: ours against Caffe's, and
// the runs that go on from Caffe's and from ours.

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/core/solver.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "data/hdf5/hdf5_file.hpp"
#include "data/model_files.hpp"
#include "golden/golden_case.hpp"
#include "golden/snapshot_check.hpp"
#include "support/temp_dir.hpp"

namespace speedo::golden {
namespace {

namespace fs = std::filesystem;

constexpr int kSnapshotIteration = 10;

using Format = caffe::SolverParameter::SnapshotFormat;

// The two files of the snapshot in one form, in `folder`.
struct Files {
  fs::path model, state;
};
Files files_in(const fs::path& folder, Format format) {
  const std::string stem = fmt::format("snap_iter_{}", kSnapshotIteration);
  const char* end = format == caffe::SolverParameter::HDF5 ? ".h5" : "";
  return {folder / (stem + ".caffemodel" + end), folder / (stem + ".solverstate" + end)};
}

// What the parts of one case share.
struct SolverCase {
  const fs::path& folder;
  const World& world;
  Hdf5Reader trace;
  caffe::SolverParameter message;
  std::int64_t iterations = 0;
  Comparison comparison;
};

Result<std::unique_ptr<Solver>> make_solver(const SolverCase& one, Solver::Hooks hooks) {
  const SolverOptions options{
      .backend = one.world.backend, .feeds = one.world.feeds, .base = one.folder};
  return Solver::create(one.message, options, std::move(hooks));
}

// Compares one arena with trace group `group`/<layer>/<parameter>.
Result<void> compare_arena(SolverCase& one, Net& net, const Arena& arena,
                           const std::string& group) {
  for (const ParameterSlot& slot : net.layout().slots()) {
    const std::string dataset = fmt::format("{}/{}/{}", group, slot.layer, slot.index);
    SPEEDO_ASSIGN(const std::vector<float> reference, one.trace.read_floats(dataset));
    one.comparison.values(
        dataset, download(net.backend(), arena.data() + slot.offset, slot.count()), reference);
  }
  return {};
}

Result<void> compare_iteration(SolverCase& one, Net& net, std::int64_t iteration) {
  const std::string weights = fmt::format("weights/{}", iteration);
  if (one.trace.has(weights)) SPEEDO_TRY(compare_arena(one, net, net.weights(), weights));
  const std::string update = fmt::format("update/{}", iteration);
  if (one.trace.has(update)) SPEEDO_TRY(compare_arena(one, net, net.gradients(), update));
  return {};
}

Result<void> compare_rates(SolverCase& one) {
  SPEEDO_ASSIGN(const std::vector<float> reference, one.trace.read_floats("lr"));
  std::vector<float> rates;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    SPEEDO_ASSIGN(const float rate, learning_rate(one.message, static_cast<std::int64_t>(i)));
    rates.push_back(rate);
  }
  one.comparison.values("lr", rates, reference, 1e-6);
  return {};
}

std::vector<float> weights_of(Solver& solver) {
  const Arena& weights = solver.net().weights();
  return download(solver.net().backend(), weights.data(), weights.size());
}

// The whole run. Leaves our snapshot of iteration 10 in `snapshot`; returns the last weights.
Result<std::vector<float>> run_trajectory(SolverCase& one, Snapshot& snapshot) {
  std::vector<float> losses;
  Solver::Hooks hooks;
  hooks.progress = [&](std::int64_t, float loss) { losses.push_back(loss); };
  hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter& model,
                       caffe::SolverState& state) -> Result<void> {
    if (iteration == kSnapshotIteration) snapshot = {model, state};
    return {};
  };
  SPEEDO_ASSIGN(const auto solver, make_solver(one, std::move(hooks)));
  SPEEDO_ASSIGN(const auto initial, read_model(one.folder / "initial.caffemodel"));
  SPEEDO_TRY(solver->net().copy_weights_from(initial));
  SPEEDO_TRY(compare_iteration(one, solver->net(), 0));
  for (std::int64_t i = 1; i <= one.iterations; ++i) {
    SPEEDO_TRY(solver->step(1));
    SPEEDO_TRY(compare_iteration(one, solver->net(), i));
  }
  SPEEDO_ASSIGN(const std::vector<float> reference, one.trace.read_floats("loss"));
  one.comparison.values("loss", losses, reference);
  return weights_of(*solver);
}

// Restores from two files and runs to the end.
Result<std::vector<float>> resume(SolverCase& one, const Files& files) {
  SPEEDO_ASSIGN(const auto solver, make_solver(one, {}));
  SPEEDO_ASSIGN(const caffe::NetParameter weights, read_model(files.model));
  SPEEDO_ASSIGN(const caffe::SolverState history, read_solver_state(files.state));
  SPEEDO_TRY(solver->restore(history, weights));
  one.comparison.require(
      solver->iteration() == kSnapshotIteration,
      fmt::format("{} resumes at {}", files.state.string(), solver->iteration()));
  SPEEDO_TRY(solver->step(one.iterations - solver->iteration()));
  SPEEDO_TRY(compare_iteration(one, solver->net(), one.iterations));
  return weights_of(*solver);
}

Result<void> check_caffes_snapshot(SolverCase& one, const Snapshot& ours, Format format) {
  const Files files = files_in(one.folder, format);
  if (!fs::exists(files.model) || !fs::exists(files.state)) return {};
  Snapshot reference;
  SPEEDO_ASSIGN(reference.model, read_model(files.model));
  SPEEDO_ASSIGN(reference.state, read_solver_state(files.state));
  compare_snapshots(ours, reference, format == caffe::SolverParameter::BINARYPROTO,
                    one.comparison);
  SPEEDO_TRY(resume(one, files));
  return {};
}

// A run that goes on from our own files must not differ in one bit from the unbroken one.
Result<void> check_our_snapshot(SolverCase& one, const Snapshot& ours, Format format,
                                const std::vector<float>& last_weights) {
  const TempDir folder;
  const Files files = files_in(folder.path(), format);
  SPEEDO_TRY(write_model(files.model, ours.model, format));
  SPEEDO_TRY(write_solver_state(files.state, ours.state, format));
  SPEEDO_ASSIGN(const std::vector<float> resumed, resume(one, files));
  one.comparison.values("weights resumed from " + files.model.filename().string(), resumed,
                        last_weights, kExact);
  return {};
}

}  // namespace

Result<Comparison> run_solver_case(const fs::path& path, const World& world) {
  SPEEDO_ASSIGN(Hdf5Reader trace, Hdf5Reader::open(path / "trace.h5"));
  SolverCase one{path, world, std::move(trace), {}, 0, {}};
  SPEEDO_ASSIGN(one.message, read_solver_prototxt(path / "solver.prototxt"));
  one.message.set_snapshot(kSnapshotIteration);
  SPEEDO_ASSIGN(const std::vector<std::int64_t> losses, one.trace.dims("loss"));
  one.iterations = losses.front();
  SPEEDO_TRY(compare_rates(one));
  Snapshot ours;
  SPEEDO_ASSIGN(const std::vector<float> last_weights, run_trajectory(one, ours));
  for (const Format format : {caffe::SolverParameter::BINARYPROTO, caffe::SolverParameter::HDF5}) {
    SPEEDO_TRY(check_caffes_snapshot(one, ours, format));
    SPEEDO_TRY(check_our_snapshot(one, ours, format, last_weights));
  }
  return std::move(one.comparison);
}

}  // namespace speedo::golden
