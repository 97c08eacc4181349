#include "sim/plan/plan.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "sim/plan/cost_exchange.hpp"
#include "sim/plan/plan_work.hpp"
#include "sim/world.hpp"

namespace speedo::sim {
namespace {

// Nothing that is planned depends on a clock that ticks.
constexpr Instant kTick = std::chrono::minutes(10);
// Whoever plans for longer has mistaken a unit.
constexpr Instant kTimeMax = std::chrono::hours(24 * 365 * 10);

double seconds_of(Instant time) { return std::chrono::duration<double>(time).count(); }

// Notes when training began and when merges and tests were done.
class Stopwatch : public Observer {
 public:
  // Before the first event: the world has the queue, and must be given its observer first.
  void attach(const EventQueue& queue) { queue_ = &queue; }

  void before(const MasterNode&, const MasterEvent& event) override {
    if (const auto* trained = std::get_if<master_event::Trained>(&event)) {
      compute_us_ += trained->message.phases.compute_us();
      exchange_us_ += trained->message.phases.exchange_us;
    } else if (std::holds_alternative<master_event::Merged>(event)) {
      last_merge_ = queue_->now();
    } else if (const auto* tested = std::get_if<master_event::Tested>(&event)) {
      curve_.push_back({seconds_since_start(), tested->iteration, tested->loss, tested->accuracy});
    }
  }
  void after(const MasterNode&, const MasterEvent&, const MasterCommands& commands) override {
    for (const MasterCommand& command : commands) {
      const bool trains = std::holds_alternative<master_command::SendTrain>(command);
      if (!trains || start_) continue;
      start_ = queue_->now();
      if (on_start) on_start();
    }
  }

  std::function<void()> on_start;  // just before the first run is ordered

  double seconds() const { return start_ ? seconds_of(last_merge_ - *start_) : 0.0; }
  double compute_seconds() const { return static_cast<double>(compute_us_) / 1e6; }
  double exchange_seconds() const { return static_cast<double>(exchange_us_) / 1e6; }
  const std::vector<PlanPoint>& curve() const { return curve_; }
  std::vector<PlanPoint> take_curve() { return std::move(curve_); }

 private:
  double seconds_since_start() const {
    return start_ ? seconds_of(queue_->now() - *start_) : 0.0;
  }

  const EventQueue* queue_ = nullptr;
  std::optional<Instant> start_;
  Instant last_merge_{0};
  std::uint64_t compute_us_ = 0, exchange_us_ = 0;
  std::vector<PlanPoint> curve_;
};

MasterConfig master_config(const PlanOptions& options, const Digest& model) {
  MasterConfig config;
  config.workers_start = options.workers;
  config.max_iteration = options.iterations;
  config.test_interval = options.test_interval;
  config.test_at_start = options.test_interval > 0;
  config.snapshot_at_end = false;
  config.stages = {options.schedule};
  config.model = model;
  config.store = StoreAddress("simulated");
  config.job = "plan";
  return config;
}

// A cluster at work. Members in the order of dependence.
class Planner {
 public:
  Planner(const ClusterCosts& cluster, const PlanOptions& options,
          const std::vector<std::size_t>& places, PlanNet& net);
  Result<PlanResult> run();

 private:
  bool is_learned() const;
  PlanResult result() const;

  const PlanOptions& options_;
  PlanNet& net_;
  const Pieces pieces_;
  Contributions contributions_;
  Stopwatch watch_;
  PlanNetwork network_;
  World world_;
  CostModel costs_;
  const RunParts parts_;
  PlanMasterWork master_work_;
  std::vector<std::unique_ptr<PlanWorkerWork>> worker_work_;
  std::optional<MasterSession> session_;
  MasterNode* master_ = nullptr;
};

Planner::Planner(const ClusterCosts& cluster, const PlanOptions& options,
                 const std::vector<std::size_t>& places, PlanNet& net)
    : options_(options),
      net_(net),
      pieces_(cluster.net, options.schedule.update, options.workers),
      world_(network_, watch_, WorldTiming{kTick, kTick}),
      costs_(world_.queue(), cluster, places, options.seed),
      parts_{world_.queue(), costs_, costs_.cluster().net, options.schedule.update, pieces_,
             contributions_},
      master_work_(parts_, net) {
  watch_.attach(world_.queue());
  network_.attach(world_.queue(), costs_);
  watch_.on_start = [this] { network_.begin_costs(); };
  const std::vector<ClusterHost> hosts = hosts_of(cluster);
  master_ = &world_.start_master();
  world_.give_name(*master_);
  for (std::size_t place = 0; place < places.size(); ++place) {
    worker_work_.push_back(std::make_unique<PlanWorkerWork>(parts_, net, place));
    WorkerConfig config;
    config.name = fmt::format("{}/{}/0", hosts[places[place]].name, place + 1);
    config.device = "cpu";
    config.uuid_low = place + 1;
    config.seed = options.seed;
    world_.start_worker(config, *worker_work_.back());
  }
}

Result<PlanResult> Planner::run() {
  MasterConfig config = master_config(options_, net_.model());
  SPEEDO_ASSIGN(config.first_version, net_.enter_stage(0, {}));
  session_.emplace(std::move(config));
  master_->begin(*session_, master_work_);
  while (!master_->finished() && !is_learned()) {
    if (options_.stop.stop_requested()) return Error{ErrorCode::kUnavailable, "broken off"};
    if (!world_.queue().step()) {
      return Error{ErrorCode::kInternal, "the simulated cluster stands still"};
    }
    if (world_.queue().now() > kTimeMax) {
      return Error{ErrorCode::kConfig,
                   fmt::format("{} iterations take this cluster more than ten years: check the "
                               "units, or plan for fewer", options_.iterations)};
    }
  }
  if (master_->finished() && master_->failure()) return *master_->failure();
  PlanResult result = this->result();
  result.curve = watch_.take_curve();
  return result;
}

bool Planner::is_learned() const {
  const std::vector<PlanPoint>& curve = watch_.curve();
  return options_.stop_at_loss && !curve.empty() &&
         static_cast<double>(curve.back().loss) <= *options_.stop_at_loss;
}

PlanResult Planner::result() const {
  const MasterProgress& progress = session_->progress();
  const CostModel::Usage usage = costs_.usage();
  PlanResult result;
  result.seconds = watch_.seconds();
  result.iterations = progress.merges;
  result.contributions = progress.contributions;
  result.discarded = progress.discarded;
  if (result.seconds <= 0.0 || result.iterations == 0) return result;
  const double seconds = result.seconds;
  result.iterations_per_second = static_cast<double>(progress.merges) / seconds;
  result.images_per_second = static_cast<double>(progress.samples) / seconds;
  result.speed_up = result.images_per_second / sequential_images_per_second(costs_.cluster());
  if (progress.contributions > 0) {
    result.staleness = progress.staleness_sum / static_cast<double>(progress.contributions);
  }
  const double bytes = static_cast<double>(usage.bytes_in + usage.bytes_out);
  result.bytes_per_second = bytes / seconds;
  result.bytes_per_iteration = bytes / static_cast<double>(progress.merges);
  result.store_busy = usage.store_busy_seconds / seconds;
  result.messages_busy = usage.message_seconds / seconds;
  result.master_busy = std::max(seconds_of(master_work_.busy()) / seconds, result.messages_busy);
  result.link_busy = usage.link_seconds / seconds;
  result.link_host = hosts_of(costs_.cluster())[usage.link_host].name;
  const double workers_time = seconds * static_cast<double>(options_.workers);
  result.computing = watch_.compute_seconds() / workers_time;
  result.exchanging = watch_.exchange_seconds() / workers_time;
  return result;
}

}  // namespace

Result<PlanResult> plan(const ClusterCosts& cluster, const PlanOptions& options, PlanNet& net) {
  SPEEDO_ASSERT(options.workers >= 1 && options.iterations >= 1);
  SPEEDO_TRY(check(cluster));
  SPEEDO_TRY(check_exchange(cluster, options.schedule.update));
  SPEEDO_ASSIGN(const std::vector<std::size_t> places, place_workers(cluster, options.workers));
  ClusterCosts used = cluster;
  if (options.schedule.update.replicated) used.worker.shares_memory = false;
  Planner planner(used, options, places, net);
  return planner.run();
}

Result<PlanResult> plan(const ClusterCosts& cluster, const PlanOptions& options) {
  CountingNet net(cluster.net.batch * options.schedule.update.steps_per_run);
  return plan(cluster, options, net);
}

double merge_seconds_alone(const ClusterCosts& cluster, const UpdateSpec& update,
                           std::uint64_t contributions) {
  EventQueue queue;
  CostModel costs(queue, cluster, {}, 0);
  const Pieces pieces(cluster.net, update, std::max<std::uint64_t>(1, contributions));
  Contributions none;
  PlanMerger merger({queue, costs, cluster.net, update, pieces, none});
  MergeJob job{};
  for (std::uint64_t worker = 0; worker < contributions; ++worker) {
    job.contributions.push_back({WorkerId{worker}, RunId{1}, 1.0F});
  }
  Instant merged{0};
  merger.merge(job, [&] { merged = queue.now(); });
  while (!queue.empty()) queue.step();
  return seconds_of(merged);
}

}  // namespace speedo::sim
