#include "measure/memory_guard.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/codec/codec.hpp>

#include "base/log.hpp"
#include "measure/store_need.hpp"
#include "train/job/job_solver.hpp"
#include "train/states/saved_states.hpp"

namespace speedo {

namespace {

// Of a device's weights and gradients: what others are given, and what is copied beside its work.
constexpr std::int64_t kHostCopies = 2;

// Arrays that the master has besides its nets': the weights, the next ones, those on their way to
// the store, a copy for a test or a snapshot.
constexpr std::int64_t kMasterArrays = 4;

// A record of the weights, and a contribution, with what a stage puts behind them.
std::int64_t record_bytes(const MemoryForecast& forecast, const UpdateSpec& stage) {
  return forecast.weight_bytes + (averages_histories(stage) ? forecast.history_bytes : 0);
}

std::int64_t record_bytes(const MemoryForecast& forecast, const std::vector<UpdateSpec>& stages) {
  std::int64_t most = 0;
  for (const UpdateSpec& stage : stages) most = std::max(most, record_bytes(forecast, stage));
  return most;
}

// What a worker keeps of the weights that a run began with, to form the difference, or reads.
std::int64_t exchange_bytes(const MemoryForecast& forecast,
                            const std::vector<UpdateSpec>& stages) {
  std::int64_t most = 0;
  for (const UpdateSpec& stage : stages) {
    if (averages_histories(stage)) {
      most = std::max(most, record_bytes(forecast, stage));
    } else if (stage.kind == UpdateKind::kFullDelta && stage.steps_per_run > 1) {
      most = std::max(most, forecast.weight_bytes);
    } else if (stage.replicated) {
      // A step, and a record of weights and histories while a replica reads one.
      most = std::max(most, 2 * forecast.weight_bytes + forecast.history_bytes);
    }
  }
  return most;
}

// What a worker keeps of codecs: the bytes that its contribution becomes, what it has left out, and
// what it will have left out once this one is merged. In shared memory contributions are exact.
std::int64_t codec_bytes(const MemoryForecast& forecast, const std::vector<UpdateSpec>& stages,
                         bool shares_memory) {
  constexpr auto kChunk = static_cast<std::int64_t>(kChunkBytes);
  std::int64_t most = 0;
  for (const UpdateSpec& stage : stages) {
    if (stage.codec.kind == CodecKind::kNone) continue;
    if (shares_memory && !stage.replicated) continue;
    const std::int64_t bytes = record_bytes(forecast, stage);
    const auto coded = static_cast<std::int64_t>(encoded_bytes_max(stage.codec, kCodecElementsMax));
    const std::int64_t left_out = carries_residual(stage) ? 2 * bytes : 0;
    most = std::max(most, left_out + (bytes + kChunk - 1) / kChunk * coded);
  }
  return most;
}

bool has_rule_of_master(const UpdateSpec& stage) {
  return stage.kind == UpdateKind::kGradientOnly;
}

// What the master has where the rule is its own, beside its nets' histories: the rule's histories
// and those that a merge under way makes, a checkpoint on its way to the store, and the histories
// of a copy. On a device with memory of its own the first two lie there, with weights and gradient.
void add_rule(const std::vector<UpdateSpec>& stages, MemoryForecast& forecast) {
  if (std::none_of(stages.begin(), stages.end(), has_rule_of_master)) return;
  const std::int64_t weights = forecast.weight_bytes, histories = forecast.history_bytes;
  forecast.exchange_bytes += weights + 2 * histories;
  forecast.history_bytes += 2 * histories;
  if (forecast.nets == MemoryKind::kHost) return;
  forecast.weight_bytes += weights;
  forecast.weight_grad_bytes += weights;
}

// With snapshots of what workers have alone: the copy of it as it was before a run lies beside it.
Result<void> add_states(const caffe::SolverParameter& solver, const std::vector<UpdateSpec>& stages,
                        MemoryForecast& forecast) {
  std::uint64_t most = 0;
  for (const UpdateSpec& stage : stages) {
    SPEEDO_ASSIGN(const std::uint64_t arrays, arrays_before_run(stage, solver));
    most = std::max(most, arrays);
  }
  forecast.history_bytes += static_cast<std::int64_t>(most) * forecast.weight_bytes;
  return {};
}

// Of one trainer: it runs no tests and writes no snapshots.
Result<MemoryForecast> forecast_worker(const caffe::SolverParameter& solver,
                                       const SolverOptions& options,
                                       const std::vector<UpdateSpec>& stages, bool shares_memory) {
  SPEEDO_ASSIGN(MemoryForecast forecast, forecast_training(without_tests(solver), options));
  forecast.snapshot_bytes = 0;
  forecast.exchange_bytes =
      exchange_bytes(forecast, stages) + codec_bytes(forecast, stages, shares_memory);
  if (forecast.nets == MemoryKind::kDevice) {
    forecast.exchange_bytes += kHostCopies * forecast.weight_bytes;
  }
  return forecast;
}

std::string to_text(const MemoryDemand& demand) {
  const std::string figures = fmt::format("{}: {}", format_bytes(demand.bytes), demand.parts);
  if (demand.limit.bytes == INT64_MAX) return figures;
  return fmt::format("{}; {} is {}", figures, demand.limit.what, format_bytes(demand.limit.bytes));
}

Result<void> judge(const std::string& what, const MemoryDemand& demand, bool force) {
  const bool fits = demand.bytes <= demand.limit.bytes;
  if (!fits && !force) {
    return Error{ErrorCode::kConfig,
                 fmt::format("memory does not suffice for {}: predicted {}. A smaller batch or net "
                             "takes less, fewer workers too; --force tries it all the same",
                             what, to_text(demand))};
  }
  SPEEDO_INFO("Memory predicted for {}: {}", what, to_text(demand));
  if (!fits) SPEEDO_WARN("That is more than there is; going on, as --force says");
  return {};
}

// Each memory by itself.
Result<void> judge(const std::string& what, const MemoryForecast& forecast,
                   const MemoryPolicy& policy) {
  for (const MemoryKind memory : {MemoryKind::kDevice, MemoryKind::kHost}) {
    const bool is_host = memory == MemoryKind::kHost;
    if (!is_host && forecast.nets == MemoryKind::kHost) continue;
    SPEEDO_TRY(judge(what,
                     MemoryDemand{forecast.bytes_in(memory), parts_text(forecast, memory),
                                  is_host ? policy.limit : policy.device_limit},
                     policy.force));
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
    // Whether its master is on this machine is not known yet.
    SPEEDO_ASSIGN(MemoryForecast forecast, forecast_worker(solver, options, job.stages, false));
    if (job.snapshot_workers) SPEEDO_TRY(add_states(solver, job.stages, forecast));
    if (!base_bytes_) base_bytes_ = forecast.base_bytes;
    forecast.base_bytes = *base_bytes_;
    const std::string what =
        workers_ == 1 ? "this worker" : fmt::format("the {} workers of this process", workers_);
    return judge(what, times(forecast, workers_), policy_);
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
  forecast.exchange_bytes = kMasterArrays * record_bytes(forecast, stages);
  add_rule(stages, forecast);
  return forecast;
}

struct ClusterForecast {
  MemoryForecast worker, master;
  std::int64_t store_bytes = 0;
};

// Of all its servers.
Result<std::int64_t> forecast_store(const ClusterPlan& plan, std::int64_t weight_bytes) {
  const StoredJob stored{.stages = plan.stages,
                         .weight_bytes = weight_bytes,
                         .workers = plan.workers,
                         .part_copies = plan.store.part_copies,
                         .worker_states = plan.store.worker_states,
                         .shares_memory = plan.store.shares_memory};
  SPEEDO_ASSIGN(const StoreNeed need, store_need(stored, plan.solver));
  const auto servers = static_cast<std::int64_t>(plan.store.servers);
  return redis_bytes(need.all + servers * need.on_its_way);
}

Result<ClusterForecast> forecast_cluster(const ClusterPlan& plan) {
  ClusterForecast cluster;
  const auto with = [&](const TrainerParts& parts, const auto& forecast) -> Result<MemoryForecast> {
    SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
    const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
    return forecast(
        SolverOptions{.backend = backend.get(), .feeds = feeds.get(), .base = plan.base});
  };
  SPEEDO_ASSIGN(cluster.worker, with(plan.worker_parts, [&](const SolverOptions& options) {
                  return forecast_worker(plan.solver, options, plan.stages,
                                         plan.store.shares_memory);
                }));
  SPEEDO_ASSIGN(cluster.master, with(plan.master_parts, [&](const SolverOptions& options) {
                  return forecast_master(plan.solver, options, plan.stages);
                }));
  SPEEDO_ASSIGN(cluster.store_bytes, forecast_store(plan, cluster.worker.weight_bytes));
  if (plan.store.worker_states) SPEEDO_TRY(add_states(plan.solver, plan.stages, cluster.worker));
  return cluster;
}

// "3 workers of 90 MiB each (weights ...)", of one memory.
std::string workers_text(std::uint64_t workers, const MemoryForecast& worker, MemoryKind memory) {
  return fmt::format("{} worker{} of {} each ({})", workers, workers == 1 ? "" : "s",
                     format_bytes(worker.bytes_in(memory)), parts_text(worker, memory));
}

MemoryDemand demand_of_host(const ClusterPlan& plan, const ClusterForecast& cluster,
                            const MemoryLimit& limit) {
  constexpr MemoryKind kHost = MemoryKind::kHost;
  const std::int64_t master = cluster.master.bytes_in(kHost);
  const std::int64_t bytes =
      static_cast<std::int64_t>(plan.workers) * cluster.worker.bytes_in(kHost) + master +
      cluster.store_bytes;
  return {bytes,
          fmt::format("{}, the master {}, the store {}",
                      workers_text(plan.workers, cluster.worker, kHost), format_bytes(master),
                      format_bytes(cluster.store_bytes)),
          limit};
}

MemoryDemand demand_of(const DeviceShare& share, const ClusterForecast& cluster) {
  constexpr MemoryKind kDevice = MemoryKind::kDevice;
  const std::int64_t master = share.has_master ? cluster.master.bytes_in(kDevice) : 0;
  const std::int64_t bytes =
      static_cast<std::int64_t>(share.workers) * cluster.worker.bytes_in(kDevice) + master;
  std::string parts = workers_text(share.workers, cluster.worker, kDevice);
  if (master > 0) parts += ", the master " + format_bytes(master);
  return {bytes, std::move(parts), share.limit};
}

}  // namespace

Result<MemoryForecast> admit_training(const caffe::SolverParameter& solver,
                                      const SolverOptions& options, const MemoryPolicy& policy) {
  SPEEDO_ASSIGN(const MemoryForecast forecast, forecast_training(solver, options));
  SPEEDO_TRY(judge("this training", forecast, policy));
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
    return forecast_master(
        has_tests(options.session) ? solver : without_tests(solver),
        {.backend = backend.get(), .feeds = feeds.get(), .base = options.spec.base},
        updates_of(options.session.stages));
  }();
  if (!forecast) {
    SPEEDO_DEBUG("The memory of the master is not known: {}", forecast.error().message);
    return std::int64_t{0};
  }
  SPEEDO_TRY(judge("this master", *forecast, policy));
  return forecast->bytes_in(MemoryKind::kHost);
}

Result<ClusterDemand> predict_cluster(const ClusterPlan& plan, const MemoryLimit& limit) {
  SPEEDO_ASSIGN(const ClusterForecast cluster, forecast_cluster(plan));
  ClusterDemand demand;
  for (const DeviceShare& share : plan.devices) {
    demand.devices.push_back(demand_of(share, cluster));
  }
  demand.host = demand_of_host(plan, cluster, limit);
  demand.worker_bytes = cluster.worker.bytes_in(MemoryKind::kHost);
  return demand;
}

Result<std::int64_t> check_cluster_memory(const ClusterPlan& plan, const MemoryPolicy& policy) {
  const auto demand = predict_cluster(plan, policy.limit);
  if (!demand) {
    SPEEDO_DEBUG("The memory of the cluster is not known: {}", demand.error().message);
    return std::int64_t{0};
  }
  for (const MemoryDemand& device : demand->devices) {
    SPEEDO_TRY(judge("this cluster", device, policy.force));
  }
  SPEEDO_TRY(judge("this cluster", demand->host, policy.force));
  return demand->worker_bytes;
}

}  // namespace speedo
