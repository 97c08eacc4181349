#include "sim/proof_servers.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/sharded_key_value.hpp"

namespace speedo::sim {
namespace {

std::shared_ptr<KeyValue> spread(std::vector<std::shared_ptr<KeyValue>> maps,
                                 const std::string& job) {
  if (maps.size() == 1) return maps.front();
  return std::make_shared<ShardedKeyValue>(std::move(maps), job);
}

}  // namespace

StoreServers::StoreServers(EventQueue& queue, std::string job, std::size_t count)
    : job_(std::move(job)) {
  std::vector<std::shared_ptr<KeyValue>> maps;
  for (std::size_t i = 0; i < count; ++i) {
    servers_.push_back(std::make_unique<StoreServer>(queue));
    StoreServer& server = *servers_.back();
    maps.emplace_back(std::shared_ptr<void>(), &server.map());
    server.on_done = [this, i](const KvOperation& operation) { tell(i, operation, on_done); };
    server.on_restart = [this, i](bool lost) { on_restart(i, lost); };
  }
  map_ = spread(std::move(maps), job_);
}

bool StoreServers::up() const {
  return std::ranges::all_of(servers_, [](const auto& each) { return each->up(); });
}

std::uint64_t StoreServers::incarnation() const {
  std::uint64_t sum = 0;
  for (const auto& each : servers_) sum += each->incarnation();
  return sum;
}

void StoreServers::cancel_restart() {
  for (const auto& each : servers_) each->cancel_restart();
}

void StoreServers::ignore_fences() {
  for (const auto& each : servers_) each->ignores_fences = true;
}

// On server K > 0 the job's tag is {JOB:K}.
std::string StoreServers::name_of(std::size_t server, const std::string& key) const {
  const std::string here = fmt::format("speedo:{{{}:{}}}", job_, server);
  if (server == 0 || !key.starts_with(here)) return key;
  return fmt::format("speedo:{{{}}}{}", job_, key.substr(here.size()));
}

void StoreServers::tell(std::size_t server, const KvOperation& operation,
                        const std::function<void(std::size_t, const KvOperation&)>& whom) const {
  if (!whom || operation.is_read()) return;
  if (server == 0) return whom(server, operation);
  KvOperation named;
  named.kind = operation.kind;
  named.key = name_of(server, operation.key);
  for (const std::string& key : operation.keys) named.keys.push_back(name_of(server, key));
  named.text = operation.text;
  named.master = operation.master;
  named.error = operation.error;
  named.server = operation.server;
  whom(server, named);
}

StoreClients::StoreClients(StoreServers& servers, ProcessPlatform& platform, Random& seeds,
                           Instant mean_time)
    : servers_(servers) {
  std::vector<std::shared_ptr<KeyValue>> maps;
  for (std::size_t i = 0; i < servers_.count(); ++i) {
    clients_.push_back(
        std::make_shared<StoreClient>(servers_.at(i), platform, seeds.next(), mean_time));
    clients_.back()->on_executed = [this, i](const KvOperation& operation) {
      servers_.tell(i, operation, on_executed);
      if (operation.is_read() && on_read) on_read();
    };
    clients_.back()->on_unanswered = [this, i](const KvOperation& operation) {
      servers_.tell(i, operation, servers_.on_unanswered);
    };
    maps.push_back(clients_.back());
  }
  map_ = spread(std::move(maps), servers_.job_);
}

void StoreClients::disconnect(const FaultMark& mark) {
  for (const auto& each : clients_) each->disconnect(mark);
}

void StoreClients::connect() {
  for (const auto& each : clients_) each->connect();
}

bool StoreClients::is_connected() const {
  return std::ranges::all_of(clients_, [](const auto& each) { return each->is_connected(); });
}

std::uint64_t StoreClients::failures() const {
  std::uint64_t sum = 0;
  for (const auto& each : clients_) sum += each->failures();
  return sum;
}

void StoreClients::set_faults(const StoreClient::Faults& faults) {
  for (const auto& each : clients_) each->set_faults(faults);
}

void StoreClients::strike_at_operation(std::uint64_t count, StoreClient::Strike strike) {
  auto plan = std::make_shared<StoreClient::StrikePlan>();
  plan->countdown = count;
  plan->strike = std::move(strike);
  for (const auto& each : clients_) each->set_strike(plan);
}

void StoreClients::strike_at_set(const std::string& key, StoreClient::Strike strike) {
  auto plan = std::make_shared<StoreClient::StrikePlan>();
  plan->set_key = key;
  plan->strike = std::move(strike);
  for (const auto& each : clients_) each->set_strike(plan);
}

void StoreClients::cancel_strike() {
  for (const auto& each : clients_) each->set_strike(nullptr);
}

}  // namespace speedo::sim
