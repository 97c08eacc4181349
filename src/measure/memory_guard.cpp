#include "measure/memory_guard.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"
#include "train/job/job_solver.hpp"

namespace speedo {

namespace {

// Versions of the weights that the store holds while one replaces the other, and arrays that the
// master has besides its nets': the weights, the next ones, those on their way to the store, a copy
// for a test or a snapshot.
constexpr std::int64_t kStoredVersions = 2;
constexpr std::int64_t kMasterArrays = 4;

// A record of the weights with what a stage puts behind them.
std::int64_t record_bytes(const MemoryForecast& forecast, const std::vector<UpdateSpec>& stages) {
  const bool longer = std::any_of(stages.begin(), stages.end(), averages_histories);
  return forecast.weight_bytes + (longer ? forecast.history_bytes : 0);
}

// What a worker keeps of the weights that a run began with, to form the difference, or reads.
std::int64_t exchange_bytes(const MemoryForecast& forecast,
                            const std::vector<UpdateSpec>& stages) {
  std::int64_t most = 0;
  for (const UpdateSpec& stage : stages) {
    if (averages_histories(stage)) {
      most = std::max(most, forecast.weight_bytes + forecast.history_bytes);
    } else if (stage.kind == UpdateKind::kFullDelta && stage.steps_per_run > 1) {
      most = std::max(most, forecast.weight_bytes);
    } else if (stage.replicated) {
      // A step, and a record of weights and histories while a replica reads one.
      most = std::max(most, 2 * forecast.weight_bytes + forecast.history_bytes);
    }
  }
  return most;
}

bool has_rule_of_master(const UpdateSpec& stage) {
  return stage.kind == UpdateKind::kGradientOnly;
}

// What the master has where the rule is its own, beside its nets' histories: the mean gradient, the
// rule's histories and what a merge is taken back with, a checkpoint on its way to the store, and
// the histories of a copy.
std::int64_t rule_bytes(const MemoryForecast& forecast, const std::vector<UpdateSpec>& stages) {
  if (std::none_of(stages.begin(), stages.end(), has_rule_of_master)) return 0;
  return 2 * forecast.weight_bytes + 4 * forecast.history_bytes;
}

// Of one trainer: it runs no tests and writes no snapshots.
Result<MemoryForecast> forecast_worker(const caffe::SolverParameter& solver,
                                       const SolverOptions& options,
                                       const std::vector<UpdateSpec>& stages) {
  SPEEDO_ASSIGN(MemoryForecast forecast, forecast_training(without_tests(solver), options));
  forecast.snapshot_bytes = 0;
  forecast.exchange_bytes = exchange_bytes(forecast, stages);
  return forecast;
}

// `figures` tell what `bytes` are made of.
Result<void> judge(const std::string& what, std::int64_t bytes, const std::string& figures,
                   const MemoryPolicy& policy) {
  const MemoryLimit& limit = policy.limit;
  const std::string text =
      fmt::format("{}; {} is {}", figures, limit.what, format_bytes(limit.bytes));
  if (bytes > limit.bytes && !policy.force) {
    return Error{ErrorCode::kConfig,
                 fmt::format("memory does not suffice for {}: predicted {}. A smaller batch or net "
                             "takes less, fewer workers too; --force tries it all the same",
                             what, text)};
  }
  SPEEDO_INFO("Memory predicted for {}: {}", what, text);
  if (bytes > limit.bytes) {
    SPEEDO_WARN("That is more than there is; going on, as --force says");
  }
  return {};
}

// Workers of one process share what the process takes without them, which only the first of them
// can see. Thread safety: any thread.
class MemoryGuard {
 public:
  MemoryGuard(std::uint64_t workers, MemoryPolicy policy)
      : workers_(workers), policy_(std::move(policy)) {}

  Result<void> admit(const JobSpec& job, const caffe::SolverParameter& solver,
                     const SolverOptions& options) {
    const std::lock_guard lock(mutex_);
    SPEEDO_ASSIGN(MemoryForecast forecast, forecast_worker(solver, options, job.stages));
    if (!base_bytes_) base_bytes_ = forecast.base_bytes;
    forecast.base_bytes = *base_bytes_;
    const std::string what =
        workers_ == 1 ? "this worker" : fmt::format("the {} workers of this process", workers_);
    const MemoryForecast all = times(forecast, workers_);
    return judge(what, all.total_bytes(), to_text(all), policy_);
  }

 private:
  const std::uint64_t workers_;
  const MemoryPolicy policy_;
  std::mutex mutex_;
  std::optional<std::int64_t> base_bytes_;
};

// Of a master: it tests and writes snapshots, and merges records of so many bytes.
Result<MemoryForecast> forecast_master(const caffe::SolverParameter& solver,
                                       const SolverOptions& options,
                                       const std::vector<UpdateSpec>& stages) {
  SPEEDO_ASSIGN(MemoryForecast forecast, forecast_training(solver, options));
  forecast.exchange_bytes =
      kMasterArrays * record_bytes(forecast, stages) + rule_bytes(forecast, stages);
  return forecast;
}

struct ClusterForecast {
  MemoryForecast worker, master;
  std::int64_t store_bytes = 0;
};

Result<ClusterForecast> forecast_cluster(const caffe::SolverParameter& solver,
                                         const std::filesystem::path& base,
                                         const std::vector<UpdateSpec>& stages,
                                         const TrainerParts& parts, std::int64_t workers) {
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  const SolverOptions options{.backend = backend.get(), .feeds = feeds.get(), .base = base};
  ClusterForecast cluster;
  SPEEDO_ASSIGN(cluster.worker, forecast_worker(solver, options, stages));
  SPEEDO_ASSIGN(cluster.master, forecast_master(solver, options, stages));
  cluster.store_bytes = (kStoredVersions + workers) * record_bytes(cluster.worker, stages);
  return cluster;
}

}  // namespace

Result<MemoryForecast> admit_training(const caffe::SolverParameter& solver,
                                      const SolverOptions& options, const MemoryPolicy& policy) {
  SPEEDO_ASSIGN(const MemoryForecast forecast, forecast_training(solver, options));
  SPEEDO_TRY(judge("this training", forecast.total_bytes(), to_text(forecast), policy));
  return forecast;
}

Admit make_memory_guard(std::uint64_t workers, const MemoryPolicy& policy) {
  auto guard = std::make_shared<MemoryGuard>(workers, policy);
  return [guard](const JobSpec& job, const caffe::SolverParameter& solver,
                 const SolverOptions& options) { return guard->admit(job, solver, options); };
}

Result<std::int64_t> admit_master(const MasterOptions& options,
                                  const caffe::SolverParameter& solver, const TrainerParts& parts,
                                  const MemoryPolicy& policy) {
  const auto forecast = [&]() -> Result<MemoryForecast> {
    SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
    const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
    const bool tests = options.session.test_interval != 0 || options.session.test_at_start;
    return forecast_master(tests ? solver : without_tests(solver),
                           {.backend = backend.get(), .feeds = feeds.get(),
                            .base = options.spec.base},
                           updates_of(options.session.stages));
  }();
  if (!forecast) {
    SPEEDO_DEBUG("The memory of the master is not known: {}", forecast.error().message);
    return std::int64_t{0};
  }
  SPEEDO_TRY(judge("this master", forecast->total_bytes(), to_text(*forecast), policy));
  return forecast->total_bytes();
}

Result<std::int64_t> check_cluster_memory(const caffe::SolverParameter& solver,
                                          const std::filesystem::path& base,
                                          const std::vector<UpdateSpec>& stages,
                                          const TrainerParts& parts, std::uint64_t workers,
                                          const MemoryPolicy& policy) {
  const auto count = static_cast<std::int64_t>(workers);
  const auto cluster = forecast_cluster(solver, base, stages, parts, count);
  if (!cluster) {
    SPEEDO_DEBUG("The memory of the cluster is not known: {}", cluster.error().message);
    return std::int64_t{0};
  }
  const std::int64_t total =
      count * cluster->worker.total_bytes() + cluster->master.total_bytes() + cluster->store_bytes;
  const std::string figures = fmt::format(
      "{}: {} worker{} of {} each ({}), the master {}, the store {}", format_bytes(total), workers,
      workers == 1 ? "" : "s", format_bytes(cluster->worker.total_bytes()),
      parts_text(cluster->worker), format_bytes(cluster->master.total_bytes()),
      format_bytes(cluster->store_bytes));
  SPEEDO_TRY(judge("this cluster", total, figures, policy));
  return cluster->worker.total_bytes();
}

}  // namespace speedo
