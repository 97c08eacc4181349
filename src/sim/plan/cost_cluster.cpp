#include "sim/plan/cost_cluster.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "sim/plan/cost_exchange.hpp"
#include "train/note_text.hpp"

namespace speedo::sim {
namespace {

// More cannot be simulated in a reasonable time, and are a slip of the pen.
constexpr std::uint64_t kHostsMax = 4096;
constexpr double kCoresMax = 65536.0;
constexpr std::uint64_t kParametersMax = 1000000000000;
constexpr std::uint64_t kBatchMax = 1000000000;
constexpr std::uint64_t kHistoriesMax = 16;
constexpr double kStepSecondsMax = 86400.0;
constexpr double kDelaySecondsMax = 3600.0;  // of a message, a record, a merge
constexpr double kTransferSecondsMax = 86400.0;  // of the weights, once
constexpr std::size_t kBucketsMax = 4096;

Error bad(std::string message) { return {ErrorCode::kConfig, std::move(message)}; }

Result<void> check_amount(const std::string& name, double value) {
  if (std::isfinite(value) && value >= 0.0) return {};
  return bad(fmt::format("{} is {}: it must be a finite number, 0 or greater", name, value));
}

Result<void> check_positive(const std::string& name, double value) {
  if (std::isfinite(value) && value > 0.0) return {};
  return bad(fmt::format("{} is {}: it must be a finite number greater than 0", name, value));
}

Result<void> check_max(const std::string& name, double value, double max) {
  if (value <= max) return {};
  return bad(fmt::format("{} is {}: at most {} can be simulated", name, value, max));
}

// 0 stands for no limit.
Result<void> check_rate(const std::string& name, double bytes_per_second, const NetCosts& net) {
  SPEEDO_TRY(check_amount(name, bytes_per_second));
  const double bytes = static_cast<double>(net.parameters) * sizeof(float);
  const double least = bytes / kTransferSecondsMax;
  if (bytes_per_second == 0.0 || bytes_per_second >= least) return {};
  return bad(fmt::format("{} is {}: for weights of {} bytes at least {:.3g} can be simulated", name,
                         bytes_per_second, bytes, least));
}

Result<void> check_rates(const ClusterCosts& cluster) {
  for (const MachineCosts& machine : cluster.machines) {
    SPEEDO_TRY(check_rate("machine '" + machine.name + "': bytes_per_second",
                          machine.bytes_per_second, cluster.net));
  }
  for (const CodecCosts& codec : cluster.codecs) {
    SPEEDO_TRY(check_rate("codec '" + codec.name + "': encode_bytes_per_second",
                          codec.encode_bytes_per_second, cluster.net));
    SPEEDO_TRY(check_rate("codec '" + codec.name + "': decode_bytes_per_second",
                          codec.decode_bytes_per_second, cluster.net));
  }
  return {};
}

Result<void> check_part(const std::string& name, double value) {
  SPEEDO_TRY(check_amount(name, value));
  return check_max(name, value, 1.0);
}

Result<void> check_factors(const BucketCosts& bucket) {
  SPEEDO_TRY(check_part("net: a bucket's product", bucket.product));
  const FactorShape& shape = bucket.factors;
  if (shape.rows == 0) return {};
  const bool fits = std::ranges::all_of(
      std::array{shape.rows, shape.height, shape.width},
      [](std::int64_t side) { return side > 0 && side <= kFactorSideMax; });
  if (fits && static_cast<std::uint64_t>(shape.height * shape.width) <= bucket.parameters) {
    return {};
  }
  return bad(fmt::format("net: a bucket of {} parameters has a product of {} x {} over {} rows",
                         bucket.parameters, shape.height, shape.width, shape.rows));
}

Result<void> check_buckets(const NetCosts& net) {
  if (net.buckets.empty()) return {};
  std::uint64_t parameters = 0;
  double computed = net.update;
  for (const BucketCosts& bucket : net.buckets) {
    SPEEDO_TRY(check_part("net: a bucket's first use", bucket.needed));
    SPEEDO_TRY(check_part("net: a bucket's end", bucket.final));
    if (bucket.final < bucket.needed) {
      return bad(fmt::format("net: a bucket's end is {}, before its first use, {}", bucket.final,
                             bucket.needed));
    }
    if (bucket.parameters == 0 || bucket.parameters > net.parameters) {
      return bad(fmt::format("net: a bucket has {} parameters of {}", bucket.parameters,
                             net.parameters));
    }
    SPEEDO_TRY(check_factors(bucket));
    parameters += bucket.parameters;
    computed += bucket.product;
  }
  if (computed >= 1.0) {
    return bad(fmt::format("net: update and the buckets' products are {} of a mini-batch: they "
                           "must leave time for the rest", computed));
  }
  if (parameters == net.parameters && net.buckets.size() <= kBucketsMax) return {};
  return bad(fmt::format("net: {} buckets have {} parameters together, the net has {}; at most {} "
                         "buckets can be simulated", net.buckets.size(), parameters,
                         net.parameters, kBucketsMax));
}

Result<void> check_net(const NetCosts& net) {
  if (net.parameters == 0 || net.parameters > kParametersMax) {
    return bad(fmt::format("net: parameters is {}: between 1 and {} can be simulated",
                           net.parameters, kParametersMax));
  }
  if (net.batch == 0 || net.batch > kBatchMax) {
    return bad(fmt::format("net: batch is {}: between 1 and {} can be simulated", net.batch,
                           kBatchMax));
  }
  if (net.histories > kHistoriesMax) {
    return bad(fmt::format("net: histories is {}: at most {} can be simulated", net.histories,
                           kHistoriesMax));
  }
  SPEEDO_TRY(check_part("net: update", net.update));
  return check_buckets(net);
}

Result<void> check_machine(const MachineCosts& machine) {
  const std::string name = "machine '" + machine.name + "': ";
  if (machine.name.empty()) return bad("a machine has no name");
  SPEEDO_TRY(check_positive(name + "cores", machine.cores));
  SPEEDO_TRY(check_max(name + "cores", machine.cores, kCoresMax));
  SPEEDO_TRY(check_amount(name + "step_spread", machine.step_spread));
  SPEEDO_TRY(check_max(name + "step_spread", machine.step_spread, kStepSpreadMax));
  if (machine.step_seconds.empty()) return bad(name + "step_seconds is empty");
  for (const double seconds : machine.step_seconds) {
    SPEEDO_TRY(check_positive(name + "step_seconds", seconds));
    SPEEDO_TRY(check_max(name + "step_seconds", seconds, kStepSecondsMax));
    if (seconds < kStepSecondsMin) {
      return bad(fmt::format("{}step_seconds is {}: at least {} can be simulated", name, seconds,
                             kStepSecondsMin));
    }
  }
  SPEEDO_TRY(check_positive(name + "mixed", machine.mixed));
  SPEEDO_TRY(check_max(name + "mixed", machine.mixed, 1.0));
  for (const double speed : machine.sharing) {
    SPEEDO_TRY(check_positive(name + "sharing", speed));
  }
  return {};
}

Result<void> check_machines(const ClusterCosts& cluster) {
  if (cluster.machines.empty()) return bad("no machine is described");
  std::set<std::string> names;
  std::uint64_t count = 0;
  for (const MachineCosts& machine : cluster.machines) {
    SPEEDO_TRY(check_machine(machine));
    if (!names.insert(machine.name).second) {
      return bad("two machines are named '" + machine.name + "'");
    }
    if (machine.count > kHostsMax) {
      return bad(fmt::format("machine '{}': count is {}, at most {} machines can be simulated",
                             machine.name, machine.count, kHostsMax));
    }
    count += machine.count;
  }
  if (count == 0 || count > kHostsMax) {
    return bad(fmt::format("{} machines are described; between 1 and {} can be simulated", count,
                           kHostsMax));
  }
  for (const auto& [what, machine] : {std::pair{"store", &cluster.store.machine},
                                      std::pair{"master", &cluster.master.machine}}) {
    const bool known = std::any_of(
        cluster.machines.begin(), cluster.machines.end(),
        [&](const MachineCosts& each) { return each.name == *machine && each.count > 0; });
    if (!known) return bad(fmt::format("{}: no machine is named '{}'", what, *machine));
  }
  return {};
}

}  // namespace

Result<void> check(const ClusterCosts& cluster) {
  SPEEDO_TRY(check_machines(cluster));
  SPEEDO_TRY(check_net(cluster.net));
  const StoreCosts& store = cluster.store;
  const std::vector<std::pair<std::string, double>> amounts = {
      {"network: latency_seconds", cluster.network.latency_seconds},
      {"network: local_latency_seconds", cluster.network.local_latency_seconds},
      {"store: record_seconds", store.record_seconds},
      {"store: read_bytes_per_second", store.read_bytes_per_second},
      {"store: write_bytes_per_second", store.write_bytes_per_second},
      {"store: busy_record_seconds", store.busy_record_seconds},
      {"store: busy_read_bytes_per_second", store.busy_read_bytes_per_second},
      {"store: busy_write_bytes_per_second", store.busy_write_bytes_per_second},
      {"master: merge_seconds", cluster.master.merge_seconds},
      {"master: merge_bytes_per_second", cluster.master.merge_bytes_per_second},
      {"master: rule_seconds", cluster.master.rule_seconds},
      {"master: product_seconds", cluster.master.product_seconds},
      {"master: message_seconds", cluster.master.message_seconds},
      {"worker: run_seconds", cluster.worker.run_seconds},
      {"worker: crowded_seconds", cluster.worker.crowded_seconds},
      {"worker: client_bytes_per_second", cluster.worker.client_bytes_per_second},
      {"worker: memory_bytes_per_second", cluster.worker.memory_bytes_per_second}};
  for (const auto& [name, value] : amounts) {
    if (name.ends_with("bytes_per_second")) {
      SPEEDO_TRY(check_rate(name, value, cluster.net));
    } else {
      SPEEDO_TRY(check_amount(name, value));
      SPEEDO_TRY(check_max(name, value, kDelaySecondsMax));
    }
  }
  SPEEDO_TRY(check_exchange(cluster));
  return check_rates(cluster);
}

std::vector<ClusterHost> hosts_of(const ClusterCosts& cluster) {
  std::vector<ClusterHost> hosts;
  for (std::size_t kind = 0; kind < cluster.machines.size(); ++kind) {
    const MachineCosts& machine = cluster.machines[kind];
    for (std::uint64_t i = 0; i < machine.count; ++i) {
      hosts.push_back({kind, machine.count == 1 ? machine.name
                                                : fmt::format("{}-{}", machine.name, i)});
    }
  }
  return hosts;
}

std::size_t host_of(const ClusterCosts& cluster, const std::string& machine) {
  std::size_t host = 0;
  for (const MachineCosts& each : cluster.machines) {
    if (each.name == machine && each.count > 0) return host;
    host += each.count;
  }
  SPEEDO_ASSERT(false && "check() found the machine");
  return 0;
}

Result<std::vector<std::size_t>> place_workers(const ClusterCosts& cluster,
                                               std::uint64_t workers) {
  const std::vector<ClusterHost> hosts = hosts_of(cluster);
  std::vector<std::size_t> places;
  for (std::uint64_t layer = 1; places.size() < workers; ++layer) {
    const std::size_t before = places.size();
    for (std::size_t host = 0; host < hosts.size() && places.size() < workers; ++host) {
      const std::uint64_t max = cluster.machines[hosts[host].kind].workers_max;
      if (max == 0 || layer <= max) places.push_back(host);
    }
    if (places.size() == before) {
      return bad(fmt::format("the machines take {}, not {}: raise workers_max or count",
                             count_workers(before), workers));
    }
  }
  return places;
}

std::uint64_t threads_of(const MachineCosts& machine, std::uint64_t workers) {
  SPEEDO_ASSERT(workers > 0);
  const auto limit = static_cast<std::uint64_t>(machine.step_seconds.size());
  const auto cores = static_cast<std::uint64_t>(machine.cores);
  const std::uint64_t wanted = machine.threads > 0 ? machine.threads : cores / workers;
  return std::clamp<std::uint64_t>(wanted, 1, limit);
}

double step_seconds_of(const MachineCosts& machine, std::uint64_t threads) {
  SPEEDO_ASSERT(threads >= 1 && threads <= machine.step_seconds.size());
  return machine.step_seconds[threads - 1];
}

double thread_speed(const MachineCosts& machine, double busy) {
  if (busy <= 1.0) return machine.sharing.empty() ? 1.0 : machine.sharing.front();
  if (machine.sharing.empty()) return busy <= machine.cores ? 1.0 : machine.cores / busy;
  const double last = static_cast<double>(machine.sharing.size());
  if (busy >= last) {
    // All threads together go on as fast as the last entry says, or faster while cores are free.
    const double usable = std::max(last, std::min(busy, machine.cores));
    return machine.sharing.back() * usable / busy;
  }
  const auto below = static_cast<std::size_t>(busy);
  const double part = busy - std::floor(busy);
  return machine.sharing[below - 1] * (1.0 - part) + machine.sharing[below] * part;
}

double sequential_images_per_second(const ClusterCosts& cluster) {
  const MachineCosts& machine = cluster.machines.front();
  return static_cast<double>(cluster.net.batch) / step_seconds_of(machine, threads_of(machine, 1));
}

}  // namespace speedo::sim
