#include "main/cluster_job.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <utility>

#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "core/prototxt.hpp"
#include "main/solver_file.hpp"

namespace speedo {

namespace {

// The net's name with only the characters that keys may have.
std::string default_job_name(const caffe::SolverParameter& solver) {
  const caffe::NetParameter& net =
      solver.has_train_net_param() ? solver.train_net_param() : solver.net_param();
  std::string name = net.name().empty() ? "speedo" : net.name();
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; },
      '_');
  return name;
}

Result<void> set_start(const ClusterFlags& flags, MasterOptions& options) {
  options.resume_from_store = flags.resume;
  if (flags.start_iter) {
    options.session.start_iteration = static_cast<std::uint64_t>(*flags.start_iter);
  }
  if (!flags.weights.empty()) {
    SPEEDO_ASSIGN(caffe::NetParameter weights, read_weights(flags.weights));
    options.initial_weights = std::make_shared<caffe::NetParameter>(std::move(weights));
  } else if (is_model_file(flags.snapshot)) {
    SPEEDO_ASSIGN(caffe::NetParameter weights, read_weights(flags.snapshot));
    options.initial_weights = std::make_shared<caffe::NetParameter>(std::move(weights));
  } else if (!flags.snapshot.empty()) {
    SPEEDO_ASSIGN(SavedState saved, read_saved_state(flags.snapshot));
    options.session.start_iteration = static_cast<std::uint64_t>(saved.state.iter());
    if (!flags.gradient_only && saved.state.history_size() > 0) {
      SPEEDO_WARN("the momentum in '{}' is not used: with full deltas each worker keeps its own; "
                  "--gradientOnly goes on exactly", flags.snapshot);
    }
    options.initial_weights = std::make_shared<caffe::NetParameter>(std::move(saved.model));
    options.initial_state = std::make_shared<caffe::SolverState>(std::move(saved.state));
  }
  return {};
}

Result<void> set_session(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                         MasterConfig& session) {
  SPEEDO_ASSIGN(const WorkerRange workers, parse_workers(flags.workers));
  session.workers_min = workers.min;
  session.max_iteration = static_cast<std::uint64_t>(std::max(0, solver.max_iter()));
  if (session.max_iteration == 0) {
    return Error{ErrorCode::kConfig,
                 "'" + flags.solver + "' has no max_iter: add it, or give --max-iter"};
  }
  if (session.start_iteration >= session.max_iteration) {
    return Error{ErrorCode::kUsage,
                 "training would start at iteration " + std::to_string(session.start_iteration) +
                     ", which is not below max_iter " + std::to_string(session.max_iteration) +
                     ": raise --max-iter"};
  }
  // SpeeDO tests at the end only; a solver that has test_interval asks for more.
  const std::int64_t solver_interval =
      solver.test_interval() > 0 ? solver.test_interval() : solver.max_iter();
  session.test_interval = static_cast<std::uint64_t>(flags.test_interval.value_or(solver_interval));
  if (solver.test_iter_size() == 0) session.test_interval = 0;
  // Caffe tests before training unless told not to; here that must be asked for, as it delays the
  // first merge.
  session.test_at_start = solver.has_test_initialization() && solver.test_initialization();
  session.snapshot_interval = static_cast<std::uint64_t>(std::max(0, solver.snapshot()));
  session.snapshot_at_end = solver.snapshot_after_train();
  // An asynchronous iteration uses one share of the data, a synchronous one a share of each worker.
  const std::uint64_t shares = strategy_name(flags) == "sync" ? workers.min : 1;
  session.first_data_run = session.start_iteration * shares;
  session.join_timeout = std::chrono::seconds(flags.join_timeout_s);
  session.worker_timeout = std::chrono::seconds(flags.worker_timeout_s);
  return {};
}

Result<void> set_spec(const ClusterFlags& flags, const caffe::SolverParameter& solver,
                      const std::filesystem::path& base, JobSpec& spec) {
  SPEEDO_ASSIGN(const WorkerRange workers, parse_workers(flags.workers));
  std::error_code code;
  spec.solver_text = to_prototxt(solver);
  spec.base = std::filesystem::absolute(base, code).string();
  spec.update = flags.gradient_only ? UpdateKind::kGradientOnly : UpdateKind::kFullDelta;
  spec.steps_per_run = flags.train;
  spec.offset_shards = flags.shard == "offset";
  spec.expected_workers = workers.max;
  return {};
}

}  // namespace

Result<ClusterJob> make_cluster_job(const ClusterFlags& flags) {
  ClusterJob job;
  SPEEDO_ASSIGN(SolverFile file, load_solver(flags.solver));
  job.solver = std::move(file.solver);
  apply({flags.max_iter, flags.seed, flags.lr, flags.momentum, flags.weight_decay}, job.solver);
  SPEEDO_ASSIGN(const std::filesystem::path base, inline_nets(job.solver, file.base));
  if (flags.batch) SPEEDO_TRY(set_effective_batch(*flags.batch, job.solver));
  settle_seed(job.solver);

  MasterOptions& options = job.options;
  options.bind = flags.bind;
  options.port = flags.port;
  options.host = flags.host;
  options.store_uri = flags.redis;
  options.job = flags.key_name.empty() ? default_job_name(job.solver) : flags.key_name;
  options.strategy.name = strategy_name(flags);
  options.merger.update = flags.gradient_only ? UpdateKind::kGradientOnly : UpdateKind::kFullDelta;
  options.merger.factor = static_cast<float>(flags.factor.value_or(1.0));
  options.merger.skip = static_cast<float>(flags.skip);
  SPEEDO_TRY(set_start(flags, options));
  SPEEDO_TRY(set_session(flags, job.solver, options.session));
  SPEEDO_TRY(set_spec(flags, job.solver, base, options.spec));
  return job;
}

}  // namespace speedo
