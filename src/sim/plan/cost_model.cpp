// Times of a record of B bytes, with nothing else going on:
//   read      record_seconds + 4 latency, then B / read_bytes_per_second
//   write     B / write_bytes_per_second, then record_seconds + 4 latency, and crowded_seconds
//             beside another worker that computes
//   in memory B / memory_bytes_per_second to read, nothing to write
//   add       B / merge_bytes_per_second
//   message   latency, then message_seconds of the master
// Meanwhile they keep links, cores of the client and of the store's host, and the store's thread
// busy for a part of that time: who has to share one of them with others takes longer.

#include "sim/plan/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <speedo/base/assert.hpp>

#include "sim/plan/cost_exchange.hpp"

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
      server_hosts_(server_hosts(cluster_)),
      shares_(server_shares(cluster_)),
      codec_(*codec_of(cluster_, cluster_.worker.codec)),
      master_host_(host_of(cluster_, cluster_.master.machine)),
      in_(worker_hosts_.size() + 1 + server_hosts_.size()),
      out_(in_.size()),
      adders_(in_.size()) {
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    const MachineCosts* machine = &machine_of(host);
    HostResources resources;
    resources.cores = flows_.add_cores(
        machine->cores, [machine](double threads) { return thread_speed(*machine, threads); },
        machine->mixed);
    resources.in = flows_.add_server();
    resources.out = flows_.add_server();
    flows_.pair_up(resources.in, resources.out);
    resources_.push_back(resources);
  }
  for (std::size_t i = 0; i < server_hosts_.size(); ++i) servers_.push_back(flows_.add_server());
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
  if (client > master()) return server_hosts_[client - master() - 1];
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

bool CostModel::shares_memory(Client worker) const {
  return worker < master() && worker_hosts_[worker] == master_host_ &&
         sim::shares_memory(cluster_);
}

bool CostModel::all_share_memory() const {
  for (std::size_t worker = 0; worker < worker_hosts_.size(); ++worker) {
    if (!shares_memory(worker)) return false;
  }
  return !worker_hosts_.empty();
}

// A server's thread works on a core of its host.
void CostModel::use_server(std::size_t server, double seconds,
                           std::vector<Flows::Use>& uses) const {
  uses.push_back({servers_[server], seconds});
  uses.push_back({resources_[server_hosts_[server]].cores, seconds});
}

// The bytes pass the links of both hosts, unless they stay within one. All that one flow moves over
// a link is one use of it.
void CostModel::use_links(std::size_t from, std::size_t to, double bytes,
                          std::vector<Flows::Use>& uses) const {
  if (from == to) return;
  for (const auto& [link, host] : {std::pair{resources_[from].out, from},
                                   std::pair{resources_[to].in, to}}) {
    const double seconds = seconds_of(bytes, machine_of(host).bytes_per_second);
    const auto same = std::ranges::find(uses, link, &Flows::Use::resource);
    if (same == uses.end()) {
      uses.push_back({link, seconds});
    } else {
      same->seconds += seconds;
    }
  }
}

void CostModel::message_to_merger(std::size_t shard, Done done) {
  start(latency(cluster_, master_host_, server_hosts_[shard]), {}, std::move(done));
}

void CostModel::message_from_merger(std::size_t shard, Done done) {
  start(latency(cluster_, server_hosts_[shard], master_host_), {},
        [this, done = std::move(done)]() mutable {
          const double seconds = cluster_.master.message_seconds;
          start(0.0, {{control_, seconds}, {resources_[master_host_].cores, seconds}},
                std::move(done));
        });
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
  if (shares_memory(client) || records == 0) return move_in_memory(client, 0.0, std::move(done));
  round_trips(client, Way::kFromStore, records, 0.0, std::move(done));
}

void CostModel::read(Client client, const Load& load, Done done) {
  if (shares_memory(client)) {
    const double bytes = kFloatBytes * static_cast<double>(load.floats);
    return move_in_memory(client, seconds_of(bytes, cluster_.worker.memory_bytes_per_second),
                          std::move(done));
  }
  usage_.bytes_out += static_cast<std::uint64_t>(stored_bytes(load));
  move(client, Way::kFromStore, load, std::move(done));
}

void CostModel::write(Client client, const Load& load, Done done) {
  if (shares_memory(client)) return move_in_memory(client, 0.0, std::move(done));
  usage_.bytes_in += static_cast<std::uint64_t>(stored_bytes(load));
  move(client, Way::kToStore, load, std::move(done));
}

// What is written is already where it is read; who reads takes a core meanwhile.
void CostModel::move_in_memory(Client client, double seconds, Done done) {
  queue_up(line_of(client, Way::kFromStore),
           [this, client, seconds](Done ended) {
             start(0.0, {{resources_[host_of_client(client)].cores, seconds}}, std::move(ended),
                   client);
           },
           std::move(done));
}

void CostModel::finish(Client client, Done done) {
  if (shares_memory(client)) return move_in_memory(client, 0.0, std::move(done));
  const bool crowded =
      client < master() && resources_[host_of_client(client)].computing > 0;
  round_trips(client, Way::kToStore, 1, crowded ? cluster_.worker.crowded_seconds : 0.0,
              std::move(done));
}

// A record's manifest lies on the first server.
void CostModel::round_trips(Client client, Way way, std::uint64_t records, double waiting,
                            Done done) {
  const StoreCosts& store = cluster_.store;
  const bool far = host_of_client(client) != server_hosts_.front();
  const double alone = waiting + store.record_seconds +
                       (far ? kRecordLatencies * cluster_.network.latency_seconds : 0.0);
  const double busy = static_cast<double>(records) * store.busy_record_seconds;
  queue_up(line_of(client, way),
           [this, client, alone, busy](Done ended) {
             std::vector<Flows::Use> uses;
             use_server(0, busy, uses);
             start(alone, std::move(uses), std::move(ended), client);
           },
           std::move(done));
}

double CostModel::stored_bytes(const Load& load) const {
  const double share = load.shard ? shares_[*load.shard] : 1.0;
  const double floats = static_cast<double>(load.floats) * share;
  return kFloatBytes * floats / (load.is_contribution ? codec_.ratio : 1.0);
}

double CostModel::codec_seconds(const Load& load, Way way) const {
  if (!load.is_contribution) return 0.0;
  const double bytes = stored_bytes(load) * codec_.ratio;
  return seconds_of(bytes, way == Way::kToStore ? codec_.encode_bytes_per_second
                                                : codec_.decode_bytes_per_second);
}

// What of the load's bytes goes to or comes from each server.
std::vector<double> CostModel::spread(const Load& load) const {
  if (!load.shard) return shares_;
  std::vector<double> parts(shares_.size(), 0.0);
  parts[(*load.shard + (load.is_copy ? 1 : 0)) % parts.size()] = 1.0;
  return parts;
}

void CostModel::add_uses(Client client, Way way, const Load& load,
                         std::vector<Flows::Use>& uses) const {
  const StoreCosts& store = cluster_.store;
  const bool out = way == Way::kToStore;
  const double alone = out ? store.write_bytes_per_second : store.read_bytes_per_second;
  const double busy = out ? store.busy_write_bytes_per_second : store.busy_read_bytes_per_second;
  const double bytes = stored_bytes(load);
  const std::size_t host = host_of_client(client);
  const std::vector<double> parts = spread(load);
  for (std::size_t server = 0; server < parts.size(); ++server) {
    if (parts[server] <= 0.0) continue;
    const std::size_t far = server_hosts_[server];
    use_server(server, seconds_of(bytes * parts[server], or_else(busy, alone)), uses);
    use_links(out ? host : far, out ? far : host, bytes * parts[server], uses);
  }
  const double least = seconds_of(bytes, alone);
  const double cpu = seconds_of(bytes, cluster_.worker.client_bytes_per_second);
  const double threads = least > 0.0 ? std::max(1.0, cpu / least) : 1.0;
  uses.push_back({resources_[host].cores, cpu / threads, threads});
  uses.push_back({resources_[host].cores, codec_seconds(load, way)});
}

void CostModel::move(Client client, Way way, const Load& load, Done done) {
  const StoreCosts& store = cluster_.store;
  const double alone =
      way == Way::kToStore ? store.write_bytes_per_second : store.read_bytes_per_second;
  queue_up(line_of(client, way),
           [this, client, way, load, alone](Done ended) {
             std::vector<Flows::Use> uses;
             add_uses(client, way, load, uses);
             start(seconds_of(stored_bytes(load), alone), std::move(uses), std::move(ended),
                   client);
           },
           std::move(done));
}

void CostModel::add(Client merger, std::uint64_t floats, double seconds, Done done) {
  const double bytes = kFloatBytes * static_cast<double>(floats);
  const double all = seconds + seconds_of(bytes, cluster_.master.merge_bytes_per_second);
  queue_up(adders_[merger],
           [this, merger, all](Done ended) {
             start(0.0, {{resources_[host_of_client(merger)].cores, all}}, std::move(ended));
           },
           std::move(done));
}

CostModel::Usage CostModel::usage() const {
  Usage usage = usage_;
  for (const Flows::ResourceId server : servers_) {
    usage.store_busy_seconds = std::max(usage.store_busy_seconds, flows_.busy_seconds(server));
  }
  usage.message_seconds = flows_.busy_seconds(control_);
  for (std::size_t host = 0; host < resources_.size(); ++host) {
    const double seconds = flows_.either_busy_seconds(resources_[host].in);
    if (seconds <= usage.link_seconds) continue;
    usage.link_seconds = seconds;
    usage.link_host = host;
  }
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
