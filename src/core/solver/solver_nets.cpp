// From a solver prototxt to its nets, by Caffe's rules of precedence.

#include <speedo/core/solver.hpp>

#include <string>
#include <utility>
#include <vector>

#include <speedo/base/remote_files.hpp>

#include "base/log.hpp"
#include "base/random_bits.hpp"
#include "base/read_found.hpp"
#include "caffe.pb.h"
#include "core/hdf5_names.hpp"
#include "core/prototxt.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

// A net's message, where it came from (for the log) and the folder its paths may be relative to.
struct NetSource {
  caffe::NetParameter net;
  std::string from;
  fs::path base;
};

Result<NetSource> read_source(const std::string& field, const std::string& file,
                              const fs::path& base) {
  const fs::path place = resolve_name(file, base);
  NetSource source{{}, field + " file: " + file, place.parent_path()};
  SPEEDO_ASSIGN(source.net, read_found(place.string(), base, read_net_prototxt));
  return source;
}

NetSource inline_source(const std::string& field, const caffe::NetParameter& net,
                        const fs::path& base) {
  return {net, field, base};
}

// The one train net. Exactly one of four fields may name it.
Result<NetSource> train_source(const caffe::SolverParameter& solver, const fs::path& base) {
  const int given = static_cast<int>(solver.has_net()) + static_cast<int>(solver.has_net_param()) +
                    static_cast<int>(solver.has_train_net()) +
                    static_cast<int>(solver.has_train_net_param());
  if (given != 1) {
    return config_error(
        fmt::format("solver: {} of the fields net, net_param, train_net, "
                    "train_net_param are given; give exactly one",
                    given == 0 ? "none" : std::to_string(given)));
  }
  if (solver.has_train_net_param()) {
    return inline_source("train_net_param", solver.train_net_param(), base);
  }
  if (solver.has_train_net()) return read_source("train_net", solver.train_net(), base);
  if (solver.has_net_param()) return inline_source("net_param", solver.net_param(), base);
  return read_source("net", solver.net(), base);
}

// Each test net is used once per test_iter: first those of test_net_param, then those of test_net;
// what is left over uses the net that serves both phases.
Result<void> check_test_counts(const caffe::SolverParameter& solver) {
  const int named = solver.test_net_param_size() + solver.test_net_size();
  const int counts = solver.test_iter_size();
  const bool shared = solver.has_net() || solver.has_net_param();
  if (shared ? counts < named : counts != named) {
    return config_error(
        fmt::format("solver: test_iter must be given once for each test net, but there "
                    "are {} test_iter and {} test nets",
                    counts, named));
  }
  for (const int count : solver.test_iter()) {
    if (count < 0) {
      return config_error(fmt::format("solver: test_iter is {}; it must not be negative", count));
    }
  }
  if (solver.test_state_size() != 0 && solver.test_state_size() != counts) {
    return config_error(
        fmt::format("solver: test_state must be given not at all or once for each of the "
                    "{} test nets, but there are {}",
                    counts, solver.test_state_size()));
  }
  if (counts != 0 && solver.test_interval() <= 0) {
    return config_error(
        "solver: test_iter is given, but test_interval is not; set test_interval to the "
        "iterations between tests");
  }
  if (counts == 0 && solver.test_interval() > 0) {
    SPEEDO_WARN("solver: test_interval is given, but no test_iter, so nothing will be tested");
  }
  return {};
}

Result<std::vector<NetSource>> test_sources(const caffe::SolverParameter& solver,
                                            const NetSource& train, const fs::path& base) {
  SPEEDO_TRY(check_test_counts(solver));
  std::vector<NetSource> sources;
  for (const caffe::NetParameter& net : solver.test_net_param()) {
    sources.push_back(inline_source("test_net_param", net, base));
  }
  for (const std::string& file : solver.test_net()) {
    SPEEDO_ASSIGN(NetSource source, read_source("test_net", file, base));
    sources.push_back(std::move(source));
  }
  sources.resize(static_cast<std::size_t>(solver.test_iter_size()), train);
  return sources;
}

// The state a net is built in: the phase, then the net's own wishes, then the solver's.
caffe::NetState merged_state(caffe::Phase phase, const caffe::NetParameter& net,
                             const caffe::NetState* wish) {
  caffe::NetState state;
  state.set_phase(phase);
  state.MergeFrom(net.state());
  if (wish != nullptr) state.MergeFrom(*wish);
  return state;
}

Result<std::unique_ptr<Net>> build(NetSource source, const caffe::NetState& state,
                                   const SolverOptions& options, NetOptions net_options) {
  *source.net.mutable_state() = state;
  net_options.phase = state.phase() == caffe::TRAIN ? Phase::kTrain : Phase::kTest;
  net_options.level = state.level();
  net_options.stages.assign(state.stage().begin(), state.stage().end());
  net_options.backend = options.backend;
  net_options.feeds = options.feeds;
  net_options.sinks = options.sinks;
  net_options.base = source.base;
  net_options.plan_only = options.plan_only;
  net_options.logs_set_up = options.logs_set_up && !options.plan_only;
  return Net::create(source.net, net_options);
}

// Before hours of training, and not at its first snapshot.
Result<void> check_names(const caffe::SolverParameter& solver, const Net& net) {
  if (solver.snapshot_format() != caffe::SolverParameter::HDF5) return {};
  std::vector<Hdf5Layer> layers;
  for (const Net::LayerView& view : net.layers()) {
    layers.push_back({view.layer->name(), static_cast<int>(view.layer->parameters().size())});
  }
  const Hdf5Names names(layers);
  if (!names.first_bad()) return {};
  return config_error(
      fmt::format("solver: snapshot_format: HDF5 cannot keep the parameters of a layer named '{}' "
                  "beside those of the others: rename it, or use BINARYPROTO",
                  *names.first_bad()));
}

}  // namespace

void settle_seed(caffe::SolverParameter& solver) {
  if (solver.random_seed() >= 0) return;
  solver.set_random_seed(draw_seed());
  SPEEDO_INFO("random_seed: {}", solver.random_seed());
}

Result<fs::path> inline_nets(caffe::SolverParameter& solver, const fs::path& base) {
  SPEEDO_ASSIGN(NetSource train, train_source(solver, base));
  for (const std::string& file : solver.test_net()) {
    SPEEDO_ASSIGN(NetSource source, read_source("test_net", file, base));
    *solver.add_test_net_param() = std::move(source.net);
  }
  solver.clear_test_net();
  if (solver.has_net()) *solver.mutable_net_param() = std::move(train.net);
  if (solver.has_train_net()) *solver.mutable_train_net_param() = std::move(train.net);
  solver.clear_net();
  solver.clear_train_net();
  return train.base;
}

Result<SolverNets> create_nets(const caffe::SolverParameter& solver, const SolverOptions& options) {
  SPEEDO_ASSIGN(const NetSource train, train_source(solver, options.base));
  SPEEDO_ASSIGN(std::vector<NetSource> tests, test_sources(solver, train, options.base));
  const auto seed =
      static_cast<std::uint64_t>(solver.random_seed() >= 0 ? solver.random_seed() : draw_seed());

  SolverNets nets;
  if (!options.plan_only) SPEEDO_INFO("Creating training net from {}", shown_name(train.from));
  const auto train_state = merged_state(caffe::TRAIN, train.net, &solver.train_state());
  NetOptions train_options;
  train_options.seed = seed;
  train_options.start_fraction = options.start_fraction;
  train_options.shares_gradients = options.shares_gradients;
  train_options.keep_blobs = solver.debug_info();
  train_options.may_fuse = !solver.debug_info();
  SPEEDO_ASSIGN(nets.train, build(train, train_state, options, train_options));
  SPEEDO_TRY(check_names(solver, *nets.train));
  NetOptions test_options;
  test_options.seed = seed;
  test_options.share_parameters = nets.train.get();
  test_options.trains = false;
  test_options.keep_blobs = solver.debug_info();
  test_options.may_fuse = !solver.debug_info();
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (!options.plan_only) {
      SPEEDO_INFO("Creating test net (#{}) specified by {}", i, shown_name(tests[i].from));
    }
    const caffe::NetState* wish =
        solver.test_state_size() == 0 ? nullptr : &solver.test_state(static_cast<int>(i));
    const caffe::NetState state = merged_state(caffe::TEST, tests[i].net, wish);
    SPEEDO_ASSIGN(std::unique_ptr<Net> net,
                  build(std::move(tests[i]), state, options, test_options));
    nets.tests.push_back(std::move(net));
  }
  return nets;
}

}  // namespace speedo
