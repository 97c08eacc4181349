// What to start for a way to use a cluster: `speedo run` where one machine does it all, else a
// redis-server for each server, the master, a merger for each shard, and on each machine with
// workers one process for all of them.

#include "measure/simulate/simulate_recommend_report.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/plan/cost_exchange.hpp"

namespace speedo {

using sim::Candidate;
using sim::ClusterCosts;
using sim::Contributes;

namespace {

constexpr int kRedisPort = 6379;

// What masters and workers of several machines show each other and their Redis.
constexpr const char* kProofs = " --token-file job.token --redis-password-file redis.password";

std::string schedule_flags(const Candidate& candidate) {
  const StrategyOptions& strategy = candidate.schedule.strategy;
  std::string flags = strategy.name == "sync" ? "--sync" : "--strategy " + strategy.name;
  if (strategy.name == "ssp") flags += fmt::format(" --staleness {}", strategy.staleness);
  if (strategy.name == "partial-sync") {
    flags += fmt::format(" --max-advance {}", strategy.max_advance);
  }
  if (strategy.name == "weedout") flags += fmt::format(" --weedout {}", strategy.window);
  if (strategy.group_count > 0) flags += fmt::format(" --groups {}", strategy.group_count);
  if (candidate.schedule.steps) {
    flags += fmt::format(" --communication-period {}", *candidate.schedule.steps);
  }
  if (candidate.contributes != Contributes::kDeltas) flags += " --gradient-only";
  if (candidate.contributes == Contributes::kReplicated) flags += " --replicated";
  if (candidate.codec != "none") flags += " --codec " + candidate.codec;
  return flags;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

struct Server {
  std::string host;
  int port = kRedisPort;  // one of its own where several are on one machine
  std::string address() const {
    return host + (port == kRedisPort ? "" : fmt::format(":{}", port));
  }
};

std::vector<Server> servers_of(const ClusterCosts& cluster) {
  const std::vector<sim::ClusterHost> hosts = sim::hosts_of(cluster);
  std::map<std::size_t, int> ports;
  std::vector<Server> servers;
  for (const std::size_t host : sim::server_hosts(cluster)) {
    servers.push_back({hosts[host].name, kRedisPort + ports[host]++});
  }
  return servers;
}

// One for each port, with the addresses by which a machine may know itself; the last port and
// address that a server is told are the ones it takes.
std::vector<std::string> server_lines(const std::vector<Server>& servers) {
  std::map<int, std::vector<std::string>> hosts;
  for (const Server& server : servers) hosts[server.port].push_back(server.host);
  std::vector<std::string> lines;
  for (const auto& [port, names] : hosts) {
    lines.push_back("on " + joined(names, ", ") + ": { cat conf/redis.conf; " +
                    (port == kRedisPort ? "" : fmt::format("echo \"port {}\"; ", port)) +
                    "echo \"bind 127.0.0.1 127.0.1.1 $(hostname -I)\"; "
                    "echo \"requirepass $(cat redis.password)\"; } | redis-server -");
  }
  return lines;
}

// Of so many workers of a machine together. Empty: one worker takes all processors by itself.
std::string thread_flag(const sim::MachineCosts& machine, std::uint64_t workers) {
  if (workers == 1 && machine.threads == 0) return {};
  return fmt::format(" --threads {}", workers * sim::threads_of(machine, workers));
}

// One process a machine: several would each take all processors.
std::vector<std::string> worker_lines(const ClusterCosts& cluster,
                                      const std::vector<std::size_t>& places,
                                      const std::string& flags) {
  const std::vector<sim::ClusterHost> hosts = sim::hosts_of(cluster);
  std::vector<std::pair<std::string, std::vector<std::string>>> alike;  // flags, machines
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const auto count = static_cast<std::uint64_t>(std::ranges::count(places, host));
    if (count == 0) continue;
    const std::string own = (count == 1 ? "" : fmt::format(" --workers {}", count)) +
                            thread_flag(cluster.machines[hosts[host].kind], count);
    auto found = std::ranges::find(alike, own, [](const auto& each) { return each.first; });
    if (found == alike.end()) found = alike.insert(alike.end(), {own, {}});
    found->second.push_back(hosts[host].name);
  }
  std::vector<std::string> lines;
  for (const auto& [own, names] : alike) {
    lines.push_back("on " + joined(names, ", ") + ": speedo-worker --master ADDRESS" + own + flags +
                    kProofs);
  }
  return lines;
}

// Of several machines.
std::vector<std::string> cluster_lines(const ClusterCosts& used, const Candidate& candidate,
                                       const std::string& flags, const std::string& memory) {
  const std::vector<sim::ClusterHost> hosts = sim::hosts_of(used);
  const std::string head = hosts[sim::host_of(used, used.master.machine)].name;
  const std::vector<Server> servers = servers_of(used);
  std::vector<std::string> addresses;
  for (const Server& server : servers) addresses.push_back(server.address());
  std::vector<std::string> lines = {
      "once, for all machines: speedo token create job.token; (umask 077; head -c 24 /dev/urandom "
      "| base64 > redis.password)"};
  std::ranges::copy(server_lines(servers), std::back_inserter(lines));
  lines.push_back(fmt::format("on {}: speedo-master {} --redis {} --bind {}{}{}", head, flags,
                              joined(addresses, ","), head, memory, kProofs));
  for (std::size_t shard = 0; shard < candidate.shards; ++shard) {
    lines.push_back(fmt::format("on {}: speedo-worker --master ADDRESS --shard={}{}",
                                servers[shard].host, shard + 1, kProofs));
  }
  return lines;
}

}  // namespace

std::vector<std::string> net_lines(const ClusterCosts& cluster, const Candidate& candidate) {
  if (candidate.batch == cluster.net.batch) return {};
  return {fmt::format("in the net: batch_size: {}", candidate.batch)};
}

std::vector<std::string> commands_for(const ClusterCosts& cluster, const Candidate& candidate) {
  const ClusterCosts used = sim::cluster_for(cluster, candidate);
  const std::vector<std::size_t> places = *sim::place_workers(used, candidate.workers);
  const bool is_replicated = candidate.contributes == Contributes::kReplicated;
  const std::string memory =
      !is_replicated && !*used.worker.shares_memory ? " --no-shared-memory" : "";
  const std::string flags = fmt::format("--solver S.prototxt --workers {} {}", candidate.workers,
                                        schedule_flags(candidate));
  std::string parts;
  if (candidate.shards > 0) {
    parts = fmt::format(" --shards {}{}", candidate.shards,
                        used.store.copies || is_replicated ? "" : " --no-shard-copies");
  }
  std::vector<std::string> lines;
  if (sim::is_one_machine(used, candidate.workers)) {
    const sim::ClusterHost host = sim::hosts_of(used)[places.front()];
    const sim::MachineCosts& machine = used.machines[host.kind];
    const bool is_one_of_several = sim::hosts_of(cluster).size() > 1;
    const std::string where = is_one_of_several ? "on " + host.name + ": " : "";
    lines.push_back(where + "speedo run " + flags + thread_flag(machine, candidate.workers) +
                    parts + memory);
  } else {
    lines = cluster_lines(used, candidate, flags, parts + memory);
    std::ranges::copy(worker_lines(used, places, memory), std::back_inserter(lines));
  }
  std::ranges::copy(net_lines(cluster, candidate), std::back_inserter(lines));
  return lines;
}

}  // namespace speedo
