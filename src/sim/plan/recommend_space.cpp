#include "sim/plan/recommend_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "sim/plan/cost_exchange.hpp"
#include "sim/plan/plan_pieces.hpp"
#include "train/schedule_numbers.hpp"

namespace speedo::sim {
namespace {

// More are not planned in a reasonable time.
constexpr std::uint64_t kShardsMax = 16;
constexpr const char* kSchedules =
    "sync,async,ssp,partial-sync,weedout,grouping,easgd,easgd:4,easgd:10,sync-easgd,sync-easgd:4,"
    "sync-easgd:10,averaging:1,averaging:5,averaging:20";
constexpr const char* kLossyCodecs[] = {"bf16", "fp16", "int8", "onebit", "topk", "threshold"};

// So few are all tried.
constexpr std::uint64_t kCountsTried = 8;

// A machine that takes any number has room for as many as have a core, or the threads they are
// given; a job takes no more than kWorkersMax.
std::uint64_t room_of(const ClusterCosts& cluster) {
  std::uint64_t room = 0;
  for (const MachineCosts& machine : cluster.machines) {
    const auto cores = static_cast<std::uint64_t>(machine.cores);
    const std::uint64_t by_cores = cores / std::max<std::uint64_t>(1, machine.threads);
    room += machine.count *
            (machine.workers_max > 0 ? machine.workers_max : std::max<std::uint64_t>(1, by_cores));
  }
  return std::min(room, kWorkersMax);
}

std::vector<std::uint64_t> worker_counts(const ClusterCosts& cluster,
                                         const SpaceOptions& options) {
  if (!options.workers.empty()) return options.workers;
  std::vector<std::uint64_t> counts;
  for (std::uint64_t count = room_of(cluster); count >= 1;
       count = count > kCountsTried ? std::max(kCountsTried, count / 2) : count - 1) {
    counts.push_back(count);
  }
  return counts;
}

std::vector<std::uint64_t> shard_counts(const ClusterCosts& cluster, const SpaceOptions& options) {
  if (options.shards) return {*options.shards};
  std::set<std::uint64_t> counts = {0, cluster.store.shards};
  const std::vector<std::string>& names = cluster.store.machines;
  std::uint64_t hosts = 0;
  for (const MachineCosts& machine : cluster.machines) {
    const bool takes = names.empty() || std::ranges::find(names, machine.name) != names.end();
    hosts += takes ? machine.count : 0;
  }
  for (std::uint64_t count = 2; count <= std::min(hosts, kShardsMax); count *= 2) {
    counts.insert(count);
  }
  if (hosts > 1 && hosts <= kShardsMax) counts.insert(hosts);
  return {counts.begin(), counts.end()};
}

std::vector<std::string> codecs_of(const ClusterCosts& cluster, const SpaceOptions& options) {
  if (!options.codec.empty()) return {options.codec};
  const std::string described = to_string(*parse_codec(cluster.worker.codec));
  if (!options.lossy) return {described};
  std::vector<std::string> names = {"none"};
  if (described != "none") names.push_back(described);
  for (const CodecCosts& codec : cluster.codecs) {
    names.push_back(to_string(*parse_codec(codec.name)));
  }
  for (const char* name : kLossyCodecs) names.push_back(to_string(*parse_codec(name)));
  std::sort(names.begin() + 1, names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<BatchCosts> batches_of(const ClusterCosts& cluster) {
  std::vector<BatchCosts> batches = cluster.net.batches;
  const bool has_own = std::ranges::any_of(batches, [&](const BatchCosts& each) {
    return each.batch == cluster.net.batch;
  });
  if (!has_own) batches.insert(batches.begin(), {cluster.net.batch, 1.0});
  return batches;
}

bool is_possible(const ClusterCosts& cluster, const Candidate& candidate) {
  const auto schedule = schedule_for(candidate);
  return schedule && check_exchange(cluster_for(cluster, candidate), schedule->update);
}

void add_if_possible(Candidate each, const ClusterCosts& cluster, std::vector<Candidate>& all) {
  for (const Contributes contributes :
       {Contributes::kDeltas, Contributes::kGradients, Contributes::kReplicated}) {
    each.contributes = contributes;
    if (contributes != Contributes::kDeltas && !learns_alike(each)) continue;
    if (is_possible(cluster, each)) all.push_back(each);
  }
}

// All that is possible with the workers, machines and shards of `each`.
void add_ways(Candidate each, const ClusterCosts& cluster, const SpaceOptions& options,
              std::vector<Candidate>& all) {
  for (const PlanSchedule& schedule : options.schedules) {
    each.schedule = schedule;
    for (const std::string& codec : codecs_of(cluster, options)) {
      each.codec = codec;
      for (const BatchCosts& batch : batches_of(cluster)) {
        each.batch = batch.batch;
        each.step_times = batch.times;
        add_if_possible(each, cluster, all);
      }
    }
  }
}

double over(double bytes, double rate) { return rate > 0.0 ? bytes / rate : 0.0; }
double per_second(double seconds) {
  return seconds > 0.0 ? 1.0 / seconds : std::numeric_limits<double>::infinity();
}

// What a contribution and a reading of the weights ask of links, servers and merger.
class RunBound {
 public:
  RunBound(const ClusterCosts& cluster, const std::vector<std::size_t>& places,
           const UpdateSpec& update)
      : cluster_(cluster),
        hosts_(hosts_of(cluster)),
        places_(places),
        servers_(server_hosts(cluster)),
        shares_(server_shares(cluster)),
        master_(host_of(cluster, cluster.master.machine)),
        overlaps_(is_elastic(update.kind)),
        pieces_(cluster.net, update, places.size()),
        bytes_(4.0 * static_cast<double>(pieces_.all_merged_floats())),
        merged_bytes_(4.0 * static_cast<double>(pieces_.all_floats())),
        up_bytes_(merged_bytes_ / codec_of(cluster, cluster.worker.codec)->ratio) {}

  // Seconds of a round, in which every worker reads and contributes once. Weights are read when
  // all is merged, but for elastic kinds, which read while they write.
  double round_seconds() const {
    double up = 0.0, down = 0.0;
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      const auto local = static_cast<double>(std::ranges::count(places_, host));
      const double far = in_memory(host) ? 0.0 : local * (1.0 - share_on(host));
      up = std::max(up, on_link(up_bytes_ * far, host));
      down = std::max(down, on_link(bytes_ * far, host));
      up = std::max(up, serving_seconds(host, true) * (stored() - stored_on(host)));
      down = std::max(down, serving_seconds(host, false) * (stored() - stored_on(host)));
    }
    up = std::max(up, thread_seconds(true) * stored());
    down = std::max(down, thread_seconds(false) * stored());
    const double merger = merger_seconds() * static_cast<double>(places_.size());
    return std::max(overlaps_ ? std::max(up, down) : up + down, merger);
  }

  // Contributions a second of workers that run for themselves, each at its `rates` at most.
  double contributions_per_second(std::vector<double> rates) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::size_t host = places_[i];
      if (in_memory(host)) continue;
      const double far = 1.0 - share_on(host);
      rates[i] = std::min(rates[i], per_second(on_link(std::max(bytes_, up_bytes_) * far, host)));
    }
    double least = per_second(merger_seconds());
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      double local = 0.0, far = 0.0;
      for (std::size_t i = 0; i < places_.size(); ++i) {
        (places_[i] == host ? local : far) += rates[i];
      }
      const double serving = std::max(serving_seconds(host, true), serving_seconds(host, false));
      least = std::min(least, local + std::min(far, per_second(serving)));
    }
    return least;
  }

 private:
  double on_link(double bytes, std::size_t host) const {
    return over(bytes, cluster_.machines[hosts_[host].kind].bytes_per_second);
  }
  bool in_memory(std::size_t host) const { return host == master_ && shares_memory(cluster_); }
  double stored_on(std::size_t host) const {
    return in_memory(host) ? 0.0 : static_cast<double>(std::ranges::count(places_, host));
  }
  double stored() const {
    double all = 0.0;
    for (const std::size_t host : places_) all += in_memory(host) ? 0.0 : 1.0;
    return all;
  }
  // Of a record, what lies on servers of that host.
  double share_on(std::size_t host) const {
    double share = 0.0;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      share += servers_[i] == host ? shares_[i] : 0.0;
    }
    return share;
  }
  // Of a host's link, for each contribution from elsewhere, or each reading.
  double serving_seconds(std::size_t host, bool up) const {
    return on_link((up ? up_bytes_ : bytes_) * share_on(host), host);
  }
  // Of the busiest server's thread.
  double thread_seconds(bool up) const {
    const StoreCosts& store = cluster_.store;
    const auto or_alone = [](double busy, double alone) { return busy > 0.0 ? busy : alone; };
    const double read = or_alone(store.busy_read_bytes_per_second, store.read_bytes_per_second);
    const double write = or_alone(store.busy_write_bytes_per_second, store.write_bytes_per_second);
    const double share = std::ranges::max(shares_);
    return share * (up ? over(up_bytes_, write) + over(up_bytes_, read) : over(bytes_, read));
  }
  // Of a contribution's share that one merger adds up.
  double merger_seconds() const {
    const double share = cluster_.store.shards > 0 ? std::ranges::max(shares_) : 1.0;
    return share * over(merged_bytes_, cluster_.master.merge_bytes_per_second);
  }

  const ClusterCosts& cluster_;
  const std::vector<ClusterHost> hosts_;
  const std::vector<std::size_t>& places_;
  const std::vector<std::size_t> servers_;
  const std::vector<double> shares_;
  const std::size_t master_;
  const bool overlaps_;
  const Pieces pieces_;
  // Of what a worker reads; of a contribution as it is merged, and as it is stored.
  const double bytes_, merged_bytes_, up_bytes_;
};

// Of a mini-batch's time, what each worker computes at least.
double least_computed(const NetCosts& net, Contributes contributes) {
  if (contributes == Contributes::kDeltas) return 1.0;
  double part = 1.0 - net.update;
  if (contributes == Contributes::kGradients) return part;
  for (const BucketCosts& bucket : net.buckets) part -= bucket.product;
  return part;
}

}  // namespace

Result<std::vector<Candidate>> candidates_of(const ClusterCosts& cluster,
                                             const SpaceOptions& options) {
  SPEEDO_TRY(check(cluster));
  SpaceOptions space = options;
  if (space.schedules.empty()) {
    SPEEDO_ASSIGN(space.schedules, parse_plan_schedules(kSchedules));
  }
  std::vector<Candidate> all;
  std::set<std::string> known;
  for (const UsedMachines& machines : machine_choices(cluster)) {
    const ClusterCosts part = part_of(cluster, machines);
    for (const std::uint64_t workers : worker_counts(part, space)) {
      if (machines.empty()) {
        SPEEDO_TRY(place_workers(part, workers));
      } else if (workers > room_of(part)) {
        continue;
      }
      for (const std::uint64_t shards : shard_counts(part, space)) {
        Candidate each;
        each.workers = workers;
        each.shards = shards;
        each.machines = machines;
        if (!known.insert(places_text(cluster_for(cluster, each), workers)).second) continue;
        add_ways(each, cluster, space, all);
      }
    }
  }
  if (!all.empty()) return all;
  return Error{ErrorCode::kConfig,
               "no schedule, codec and number of shards that were asked for go together: leave "
               "some of --strategy, --codec and --shards out"};
}

bool is_one_machine(const ClusterCosts& cluster, std::uint64_t workers) {
  const std::size_t master = host_of(cluster, cluster.master.machine);
  const auto is_masters = [&](std::size_t host) { return host == master; };
  const auto places = place_workers(cluster, workers);
  return places && std::ranges::all_of(*places, is_masters) &&
         std::ranges::all_of(server_hosts(cluster), is_masters);
}

ClusterCosts cluster_for(const ClusterCosts& cluster, const Candidate& candidate) {
  ClusterCosts used = part_of(cluster, candidate.machines);
  used.net.batch = candidate.batch;
  used.net.batches.clear();  // they are relative to the one described
  for (BucketCosts& bucket : used.net.buckets) {
    const auto rows = static_cast<double>(bucket.factors.rows * static_cast<std::int64_t>(
                                                                    candidate.batch)) /
                      static_cast<double>(cluster.net.batch);
    constexpr auto kMost = static_cast<double>(kFactorSideMax);
    bucket.factors.rows = static_cast<std::int64_t>(std::min(std::ceil(rows), kMost));
  }
  // A rule takes the same time for any batch.
  used.net.update /= candidate.step_times;
  used.master.product_seconds *= candidate.step_times;
  for (MachineCosts& machine : used.machines) {
    for (double& seconds : machine.step_seconds) seconds *= candidate.step_times;
  }
  if (candidate.shards > 0) used.store.servers = 1;
  used.store.shards = candidate.shards;
  if (is_one_machine(used, candidate.workers)) {
    used.store.servers = 1;
    used.store.machine = used.master.machine;
  }
  if (candidate.contributes == Contributes::kReplicated) used.store.copies = false;
  used.worker.codec = candidate.codec;
  // As production does unless it is told otherwise.
  used.worker.shares_memory = candidate.contributes != Contributes::kReplicated &&
                              cluster.worker.shares_memory.value_or(true);
  return used;
}

Result<Schedule> schedule_for(const Candidate& candidate) {
  SPEEDO_ASSIGN(Schedule schedule, make_schedule(candidate.schedule, candidate.workers,
                                                 std::nullopt, candidate.contributes));
  SPEEDO_ASSIGN(schedule.update.codec, parse_codec(candidate.codec));
  SPEEDO_TRY(check_schedule(schedule));
  return schedule;
}

bool learns_alike(const Candidate& candidate) {
  return candidate.schedule.strategy.name == "sync" &&
         candidate.schedule.steps.value_or(1) == 1 && candidate.codec == "none";
}

double images_bound(const ClusterCosts& cluster, const Candidate& candidate) {
  const ClusterCosts used = cluster_for(cluster, candidate);
  const auto schedule = schedule_for(candidate);
  const auto places = place_workers(used, candidate.workers);
  if (!schedule || !places) return 0.0;
  const std::vector<ClusterHost> hosts = hosts_of(used);
  const double computed = least_computed(used.net, candidate.contributes);
  const double steps = schedule->update.steps_per_run;
  double spread = 0.0;
  std::vector<double> rates;
  for (const std::size_t host : *places) {
    const MachineCosts& machine = used.machines[hosts[host].kind];
    const auto beside = static_cast<std::uint64_t>(std::ranges::count(*places, host));
    const double step_seconds = step_seconds_of(machine, threads_of(machine, beside));
    rates.push_back(1.0 / (computed * steps * step_seconds));
    spread = std::max(spread, machine.step_spread);
  }
  const RunBound bound(used, *places, schedule->update);
  const double runs = find_strategy(candidate.schedule.strategy.name)->rounds
                          ? static_cast<double>(candidate.workers) *
                                std::min(std::ranges::min(rates),
                                         per_second(bound.round_seconds()))
                          : bound.contributions_per_second(rates);
  return runs * steps * static_cast<double>(candidate.batch) * (1.0 + spread);
}

}  // namespace speedo::sim
