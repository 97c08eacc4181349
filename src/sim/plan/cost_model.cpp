// Times of a record of B bytes, with nothing else going on:
//   read      record_seconds + 4 latency, then B / read_bytes_per_second
//   write     B / write_bytes_per_second, then record_seconds + 4 latency, and crowded_seconds
//             beside another worker that computes
//   add       B / merge_bytes_per_second
//   message   latency, then message_seconds of the master
// Meanwhile they keep links, cores of the client and of the store's host, and the store's thread
// busy for a part of that time: who has to share one of them with others takes longer.

#include "sim/plan/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {
namespace {

constexpr double kFloatBytes = 4.0;
// Opening a record and moving its chunks are a request and an answer each.
constexpr double kRecordLatencies = 4.0;

double seconds_of(double bytes, double bytes_per_second) {
  return bytes_per_second > 0.0 ? bytes / bytes_per_second : 0.0;
}

double or_else(double value, double otherwise) { return value > 0.0 ? value : otherwise; }

double latency(const ClusterCosts& cluster, std::size_t from, std::size_t to) {
  return from == to ? cluster.network.local_latency_seconds : cluster.network.latency_seconds;
}

}  // namespace

CostModel::CostModel(EventQueue& queue, ClusterCosts cluster,
                     std::vector<std::size_t> worker_hosts, std::uint64_t seed)
    : queue_(queue),
      cluster_(std::move(cluster)),
      hosts_(hosts_of(cluster_)),
      worker_hosts_(std::move(worker_hosts)),
      store_host_(host_of(cluster_, cluster_.store.machine)),
      master_host_(host_of(cluster_, cluster_.master.machine)),
      in_(worker_hosts_.size() + 1),
      out_(worker_hosts_.size() + 1) {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const MachineCosts* machine = &machine_of(host);
    HostResources resources;
    resources.cores = flows_.add_cores(
        machine->cores, [machine](double threads) { return thread_speed(*machine, threads); },
        machine->mixed);
    resources.in = flows_.add_server();
    resources.out = flows_.add_server();
    resources_.push_back(resources);
  }
  store_ = flows_.add_server();
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

std::size_t CostModel::host_of_client(Client client) const {
  return client == master() ? master_host_ : worker_hosts_[client];
}

CostModel::Line& CostModel::line_of(Client client, Way way) {
  return way == Way::kToStore ? out_[client] : in_[client];
}

void CostModel::queue_up(Line& line, std::function<void(Done)> work, Done done) {
  line.waiting.push_back([this, &line, work = std::move(work), done = std::move(done)] {
    work([this, &line, done] {
      line.busy = false;
      start_next(line);
      done();
    });
  });
  start_next(line);
}

void CostModel::start_next(Line& line) {
  if (line.busy || line.waiting.empty()) return;
  line.busy = true;
  const std::function<void()> next = std::move(line.waiting.front());
  line.waiting.pop_front();
  next();
}

// The store's thread works on a core of its host.
void CostModel::use_store(double seconds, std::vector<Flows::Use>& uses) const {
  uses.push_back({store_, seconds});
  uses.push_back({resources_[store_host_].cores, seconds});
}

// The bytes pass the links of both hosts, unless they stay within one.
void CostModel::use_links(std::size_t from, std::size_t to, double bytes,
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

// Log-normal around its mean: never negative, with the long tail that steps have.
double CostModel::draw_step_seconds(std::size_t worker) {
  const MachineCosts& machine = machine_of(worker_hosts_[worker]);
  const double sigma = std::sqrt(std::log1p(machine.step_spread * machine.step_spread));
  const double normal =
      sigma > 0.0 ? static_cast<double>(random_[worker].gaussian(0.0F, 1.0F)) : 0.0;
  return step_seconds_of(machine, worker_threads_[worker]) *
         std::exp(sigma * normal - sigma * sigma / 2.0);
}

void CostModel::compute(std::size_t worker, double seconds, Done done) {
  const std::size_t host = worker_hosts_[worker];
  usage_.compute_seconds += seconds;
  resources_[host].computing += 1;
  const auto threads = static_cast<double>(worker_threads_[worker]);
  start(0.0, {{resources_[host].cores, seconds, threads, true}},
        [this, host, done = std::move(done)] {
          resources_[host].computing -= 1;
          done();
        });
}

void CostModel::open(Client client, std::uint64_t records, Done done) {
  round_trips(client, Way::kFromStore, records, 0.0, std::move(done));
}

void CostModel::read(Client client, std::uint64_t floats, Done done) {
  usage_.bytes_out += floats * sizeof(float);
  move(client, Way::kFromStore, floats, std::move(done));
}

void CostModel::write(Client client, std::uint64_t floats, Done done) {
  usage_.bytes_in += floats * sizeof(float);
  move(client, Way::kToStore, floats, std::move(done));
}

void CostModel::finish(Client client, Done done) {
  const bool crowded =
      client != master() && resources_[host_of_client(client)].computing > 0;
  round_trips(client, Way::kToStore, 1, crowded ? cluster_.worker.crowded_seconds : 0.0,
              std::move(done));
}

void CostModel::round_trips(Client client, Way way, std::uint64_t records, double waiting,
                            Done done) {
  const StoreCosts& store = cluster_.store;
  const bool far = host_of_client(client) != store_host_;
  const double alone = waiting + store.record_seconds +
                       (far ? kRecordLatencies * cluster_.network.latency_seconds : 0.0);
  const double busy = static_cast<double>(records) * store.busy_record_seconds;
  queue_up(line_of(client, way),
           [this, client, alone, busy](Done ended) {
             std::vector<Flows::Use> uses;
             use_store(busy, uses);
             start(alone, std::move(uses), std::move(ended), client);
           },
           std::move(done));
}

void CostModel::move(Client client, Way way, std::uint64_t floats, Done done) {
  const StoreCosts& store = cluster_.store;
  const double bytes = kFloatBytes * static_cast<double>(floats);
  const bool out = way == Way::kToStore;
  const double alone = out ? store.write_bytes_per_second : store.read_bytes_per_second;
  const double busy = out ? store.busy_write_bytes_per_second : store.busy_read_bytes_per_second;
  queue_up(line_of(client, way),
           [this, client, bytes, out, alone, busy](Done ended) {
             const std::size_t host = host_of_client(client);
             std::vector<Flows::Use> uses;
             use_store(seconds_of(bytes, or_else(busy, alone)), uses);
             use_links(out ? host : store_host_, out ? store_host_ : host, bytes, uses);
             const double least = seconds_of(bytes, alone);
             const double cpu = seconds_of(bytes, cluster_.worker.client_bytes_per_second);
             const double threads = least > 0.0 ? std::max(1.0, cpu / least) : 1.0;
             uses.push_back({resources_[host].cores, cpu / threads, threads});
             start(least, std::move(uses), std::move(ended), client);
           },
           std::move(done));
}

void CostModel::add(std::uint64_t floats, double seconds, Done done) {
  const double bytes = kFloatBytes * static_cast<double>(floats);
  const double all = seconds + seconds_of(bytes, cluster_.master.merge_bytes_per_second);
  queue_up(adder_,
           [this, all](Done ended) {
             start(0.0, {{resources_[master_host_].cores, all}}, std::move(ended));
           },
           std::move(done));
}

CostModel::Usage CostModel::usage() const {
  Usage usage = usage_;
  usage.store_busy_seconds = flows_.busy_seconds(store_);
  usage.message_seconds = flows_.busy_seconds(control_);
  return usage;
}

void CostModel::start(double seconds, std::vector<Flows::Use> uses, Done done,
                      Flows::Party party) {
  flows_.start(queue_.now(), seconds, std::move(uses), std::move(done), party);
  schedule();
}

// One timer counts, the last one set: what finishes next may have changed. What is started while
// flows end is counted in once, behind them.
void CostModel::schedule() {
  if (advancing_) return;
  const std::uint64_t generation = ++generation_;
  if (flows_.idle()) return;
  queue_.at(flows_.next(), [this, alive = std::weak_ptr<bool>(alive_), generation] {
    if (alive.expired() || generation != generation_) return;
    advancing_ = true;
    flows_.advance(queue_.now());
    if (alive.expired()) return;
    advancing_ = false;
    schedule();
  });
}

}  // namespace speedo::sim
