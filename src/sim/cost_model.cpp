// Times of one contribution of B bytes, with nothing else going on:
//   compute   steps x step_seconds(threads) x spread, and run_seconds
//   read      record_seconds + 4 latency + B / read_bytes_per_second
//   write     record_seconds + 4 latency + B / write_bytes_per_second, and crowded_seconds beside
//             another worker that computes
//   merge     merge_seconds + (reads of all contributions, arithmetic, write), one after the other
//             within a chunk and overlapped between chunks: max + (sum - max) / chunks
//   message   latency, then message_seconds of the master
// When others are under way, each of these is stretched by the resource that it has to share most.

#include "sim/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

namespace speedo::sim {
namespace {

constexpr double kFloatBytes = 4.0;
// Opening a record and moving its chunks are a request and an answer each.
constexpr double kRecordLatencies = 4.0;

double seconds_of(double bytes, double bytes_per_second) {
  return bytes_per_second > 0.0 ? bytes / bytes_per_second : 0.0;
}

double part_of(double seconds, double whole) {
  return whole > 0.0 ? std::min(1.0, seconds / whole) : 1.0;
}

double or_else(double value, double otherwise) { return value > 0.0 ? value : otherwise; }

double latency(const ClusterCosts& cluster, std::size_t from, std::size_t to) {
  return from == to ? cluster.network.local_latency_seconds : cluster.network.latency_seconds;
}

enum class Way { kToStore, kFromStore };

// One client's records with nothing else going on.
double transfer_alone(const ClusterCosts& cluster, bool far, Way way, double records,
                      double bytes) {
  const StoreCosts& store = cluster.store;
  const double rate =
      way == Way::kToStore ? store.write_bytes_per_second : store.read_bytes_per_second;
  const double waits = far ? kRecordLatencies * cluster.network.latency_seconds : 0.0;
  return store.record_seconds * records + waits + seconds_of(bytes, rate);
}

double store_busy(const StoreCosts& store, Way way, double records, double bytes) {
  const double rate =
      way == Way::kToStore
          ? or_else(store.busy_write_bytes_per_second, store.write_bytes_per_second)
          : or_else(store.busy_read_bytes_per_second, store.read_bytes_per_second);
  return store.busy_record_seconds * records + seconds_of(bytes, rate);
}

// What a merge moves and takes.
struct MergeLoad {
  double records_read = 0.0, records_written = 0.0;
  double bytes_read = 0.0, bytes_written = 0.0;
  double seconds_alone = 0.0, cpu_seconds = 0.0;
};

MergeLoad merge_load(const ClusterCosts& cluster, const Traffic& traffic,
                     std::uint64_t contributions) {
  const auto count = static_cast<double>(contributions);
  const bool writes_back = traffic.merge_writes_back > 0;
  const double part = kFloatBytes * static_cast<double>(traffic.merge_reads);
  MergeLoad load;
  load.records_read = count;
  load.records_written = 1.0 + (writes_back ? count : 0.0) + (traffic.checkpoint > 0 ? 1.0 : 0.0);
  load.bytes_read = part * count;
  load.bytes_written =
      kFloatBytes * (static_cast<double>(traffic.merge_writes + traffic.checkpoint) +
                     static_cast<double>(traffic.merge_writes_back) * count);
  const bool far =
      host_of(cluster, cluster.master.machine) != host_of(cluster, cluster.store.machine);
  const double adding = seconds_of(load.bytes_read, cluster.master.merge_bytes_per_second);
  const double reading =
      transfer_alone(cluster, far, Way::kFromStore, load.records_read, load.bytes_read);
  const double writing =
      transfer_alone(cluster, far, Way::kToStore, load.records_written, load.bytes_written);
  const double longest = std::max({adding, reading, writing});
  const double chunks = std::ceil(std::max(1.0, part / static_cast<double>(kChunkBytes)));
  load.seconds_alone = cluster.master.merge_seconds + longest +
                       (adding + reading + writing - longest) / chunks;
  const double client = seconds_of(load.bytes_read + load.bytes_written,
                                   cluster.worker.client_bytes_per_second);
  load.cpu_seconds =
      std::min(load.seconds_alone, cluster.master.merge_seconds + adding + client);
  return load;
}

}  // namespace

double merge_seconds_alone(const ClusterCosts& cluster, const Traffic& traffic,
                           std::uint64_t contributions) {
  return merge_load(cluster, traffic, contributions).seconds_alone;
}

Traffic traffic_of(const UpdateSpec& update, const NetCosts& net) {
  const bool averaged = update.updater == UpdaterState::kAverage;
  const std::uint64_t record = net.parameters * (averaged ? 1 + net.histories : 1);
  Traffic traffic{.worker_reads = record,
                  .worker_writes = record,
                  .merge_reads = record,
                  .merge_writes = record};
  if (update.kind == UpdateKind::kElastic) traffic.reads_after_compute = true;
  if (update.kind == UpdateKind::kElasticMaster) traffic.merge_writes_back = record;
  if (update.kind == UpdateKind::kGradientOnly) {
    const bool each_merge = net.parameters * 4 <= kPublishEachMergeBytesMax;
    traffic.checkpoint = net.parameters * (1 + net.histories) / (each_merge ? 1 : 10);
  }
  return traffic;
}

CostModel::CostModel(EventQueue& queue, ClusterCosts cluster,
                     std::vector<std::size_t> worker_hosts, std::uint64_t seed)
    : queue_(queue),
      cluster_(std::move(cluster)),
      hosts_(hosts_of(cluster_)),
      worker_hosts_(std::move(worker_hosts)),
      store_host_(host_of(cluster_, cluster_.store.machine)),
      master_host_(host_of(cluster_, cluster_.master.machine)) {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const MachineCosts* machine = &machine_of(host);
    HostResources resources;
    resources.cores =
        flows_.add_cores([machine](double threads) { return thread_speed(*machine, threads); });
    resources.in = flows_.add_server();
    resources.out = flows_.add_server();
    resources_.push_back(resources);
  }
  store_ = flows_.add_server_on(resources_[store_host_].cores);
  merger_ = flows_.add_server();
  control_ = flows_.add_server();
  for (std::size_t worker = 0; worker < worker_hosts_.size(); ++worker) {
    const std::size_t host = worker_hosts_[worker];
    const auto beside = static_cast<std::uint64_t>(
        std::count(worker_hosts_.begin(), worker_hosts_.end(), host));
    worker_threads_.push_back(threads_of(machine_of(host), beside));
    random_.push_back(Random::derive(seed, {worker}));
  }
}

const MachineCosts& CostModel::machine_of(std::size_t host) const {
  return cluster_.machines[hosts_[host].kind];
}

// The bytes pass the links of both hosts, unless they stay within one.
void CostModel::add_links(std::size_t from, std::size_t to, double bytes,
                          std::vector<Flows::Use>& uses) const {
  if (from == to) return;
  uses.push_back({resources_[from].out, seconds_of(bytes, machine_of(from).bytes_per_second)});
  uses.push_back({resources_[to].in, seconds_of(bytes, machine_of(to).bytes_per_second)});
}

void CostModel::message_to_master(std::size_t worker, Done done) {
  const double far = latency(cluster_, worker_hosts_[worker], master_host_);
  start(far, {}, [this, done = std::move(done)]() mutable {
    const double seconds = cluster_.master.message_seconds;
    start(0.0, {{control_, seconds}, {resources_[master_host_].cores, seconds}}, std::move(done));
  });
}

void CostModel::message_to_worker(std::size_t worker, Done done) {
  start(latency(cluster_, worker_hosts_[worker], master_host_), {}, std::move(done));
}

// Log-normal around 1: never negative, with the long tail that steps have.
double CostModel::sigma_of(const MachineCosts& machine) {
  return std::sqrt(std::log1p(machine.step_spread * machine.step_spread));
}

void CostModel::compute(std::size_t worker, std::uint64_t steps, Done done) {
  const std::size_t host = worker_hosts_[worker];
  const MachineCosts& machine = machine_of(host);
  const double sigma = sigma_of(machine);
  double parts = 0.0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const double normal =
        sigma > 0.0 ? static_cast<double>(random_[worker].gaussian(0.0F, 1.0F)) : 0.0;
    parts += std::exp(sigma * normal - sigma * sigma / 2.0);
  }
  const std::uint64_t threads = worker_threads_[worker];
  const double seconds =
      cluster_.worker.run_seconds + parts * step_seconds_of(machine, threads);
  usage_.compute_seconds += seconds;
  resources_[host].computing += 1;
  start(0.0, {{resources_[host].cores, seconds, static_cast<double>(threads)}},
        [this, host, done = std::move(done)] {
          resources_[host].computing -= 1;
          done();
        });
}

void CostModel::read(std::size_t worker, std::uint64_t floats, Done done) {
  const std::size_t host = worker_hosts_[worker];
  const double bytes = kFloatBytes * static_cast<double>(floats);
  usage_.bytes_out += floats * sizeof(float);
  const double busy = store_busy(cluster_.store, Way::kFromStore, 1.0, bytes);
  std::vector<Flows::Use> uses = {{store_, busy}};
  add_links(store_host_, host, bytes, uses);
  const double alone =
      transfer_alone(cluster_, host != store_host_, Way::kFromStore, 1.0, bytes);
  start_client(host, alone, bytes, std::move(uses), std::move(done));
}

void CostModel::write(std::size_t worker, std::uint64_t floats, Done done) {
  const std::size_t host = worker_hosts_[worker];
  const bool crowded = resources_[host].computing > 0;
  write_from(host, floats, crowded ? cluster_.worker.crowded_seconds : 0.0, std::move(done));
}

void CostModel::publish(std::uint64_t floats, Done done) {
  write_from(master_host_, floats, 0.0, std::move(done));
}

void CostModel::write_from(std::size_t host, std::uint64_t floats, double waiting, Done done) {
  const double bytes = kFloatBytes * static_cast<double>(floats);
  usage_.bytes_in += floats * sizeof(float);
  const double busy = store_busy(cluster_.store, Way::kToStore, 1.0, bytes);
  std::vector<Flows::Use> uses = {{store_, busy}};
  add_links(host, store_host_, bytes, uses);
  const double alone =
      waiting + transfer_alone(cluster_, host != store_host_, Way::kToStore, 1.0, bytes);
  start_client(host, alone, bytes, std::move(uses), std::move(done));
}

// A transfer keeps a part of a core of the client's host busy.
void CostModel::start_client(std::size_t host, double alone, double bytes,
                             std::vector<Flows::Use> uses, Done done) {
  const double cpu = seconds_of(bytes, cluster_.worker.client_bytes_per_second);
  uses.push_back({resources_[host].cores, std::min(cpu, alone), part_of(cpu, alone)});
  start(alone, std::move(uses), std::move(done));
}

void CostModel::merge(const Traffic& traffic, std::uint64_t contributions, Done done) {
  const MergeLoad load = merge_load(cluster_, traffic, contributions);
  usage_.bytes_out += static_cast<std::uint64_t>(load.bytes_read);
  usage_.bytes_in += static_cast<std::uint64_t>(load.bytes_written);
  const double busy =
      store_busy(cluster_.store, Way::kFromStore, load.records_read, load.bytes_read) +
      store_busy(cluster_.store, Way::kToStore, load.records_written, load.bytes_written);
  std::vector<Flows::Use> uses = {
      {merger_, load.seconds_alone},
      {store_, busy},
      {resources_[master_host_].cores, load.cpu_seconds,
       part_of(load.cpu_seconds, load.seconds_alone)}};
  add_links(store_host_, master_host_, load.bytes_read, uses);
  add_links(master_host_, store_host_, load.bytes_written, uses);
  start(load.seconds_alone, std::move(uses), std::move(done));
}

CostModel::Usage CostModel::usage() const {
  Usage usage = usage_;
  usage.store_busy_seconds = flows_.busy_seconds(store_);
  usage.master_busy_seconds = flows_.busy_seconds(merger_) + flows_.busy_seconds(control_);
  return usage;
}

void CostModel::start(double seconds, std::vector<Flows::Use> uses, Done done) {
  flows_.start(queue_.now(), seconds, std::move(uses), std::move(done));
  schedule();
}

// One timer counts, the last one set: what finishes next may have changed.
void CostModel::schedule() {
  const std::uint64_t generation = ++generation_;
  if (flows_.idle()) return;
  queue_.at(flows_.next(), [this, alive = std::weak_ptr<bool>(alive_), generation] {
    if (alive.expired() || generation != generation_) return;
    flows_.advance(queue_.now());
    if (generation == generation_) schedule();
  });
}

}  // namespace speedo::sim
