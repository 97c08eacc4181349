#include "support/redis_cluster.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "support/redis_ask.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kSlots = 16384;
constexpr std::chrono::seconds kPatience{60};

}  // namespace

RedisCluster::RedisCluster(const Options& options) : options_(options) {
  start_nodes();
  join();
}

void RedisCluster::start_nodes() {
  for (std::size_t i = 0; i < options_.primaries + options_.replicas; ++i) {
    Node node;
    node.bus = std::make_unique<ReservedPort>();
    RedisServer::Options server;
    server.password = options_.password;
    server.extra = "cluster-enabled yes\ncluster-node-timeout " +
                   std::to_string(options_.node_timeout_ms) + "\ncluster-port " + node.bus->text() +
                   "\nrepl-diskless-sync-delay 0\n" + options_.extra;
    if (!options_.password.empty()) server.extra += "\nmasterauth " + options_.password;
    node.server = std::make_unique<RedisServer>(server);
    nodes_.push_back(std::move(node));
    nodes_.back().id = ask(i, "CLUSTER MYID");
  }
}

void RedisCluster::join() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    require_ok(i, "CLUSTER SET-CONFIG-EPOCH " + std::to_string(i + 1));
    if (i >= options_.primaries) continue;
    const std::size_t begin = i * kSlots / options_.primaries;
    const std::size_t end = (i + 1) * kSlots / options_.primaries;
    require_ok(i, "CLUSTER ADDSLOTSRANGE " + std::to_string(begin) + " " + std::to_string(end - 1));
  }
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    require_ok(0, "CLUSTER MEET 127.0.0.1 " + std::to_string(nodes_[i].server->port()) + " " +
                      nodes_[i].bus->text());
  }
  for (std::size_t i = options_.primaries; i < nodes_.size(); ++i) {
    wait_for(i, "CLUSTER NODES", nodes_[0].id);
    require_ok(i, "CLUSTER REPLICATE " + nodes_[0].id);
  }
  wait_until_ok();
  for (std::size_t i = options_.primaries; i < nodes_.size(); ++i) {
    wait_for(i, "INFO replication", "master_link_status:up");
  }
}

void RedisCluster::wait_until_ok() const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].server->running()) continue;
    wait_for(i, "CLUSTER INFO", "cluster_state:ok");
    wait_for(i, "CLUSTER INFO", "cluster_known_nodes:" + std::to_string(nodes_.size()));
  }
}

std::string RedisCluster::address() const {
  std::string text = "redis-cluster://";
  for (std::size_t i = 0; i < options_.primaries; ++i) {
    text += (i == 0 ? "" : ",") + std::string("127.0.0.1:") +
            std::to_string(nodes_[i].server->port());
  }
  return text;
}

std::size_t RedisCluster::first_owner(std::uint16_t slot) const {
  std::size_t node = 0;
  while (slot >= (node + 1) * kSlots / options_.primaries) ++node;
  return node;
}

std::string RedisCluster::ask(std::size_t node, const std::string& words) const {
  return ask_redis(nodes_[node].server->port(), words, options_.password);
}

void RedisCluster::require_ok(std::size_t node, const std::string& words) const {
  const std::string answer = ask(node, words);
  if (answer != "OK") throw std::runtime_error(words + ": " + answer);
}

void RedisCluster::wait_for(std::size_t node, const std::string& words,
                            const std::string& answer) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  std::string said;
  while ((said = ask(node, words)).find(answer) == std::string::npos) {
    if (std::chrono::steady_clock::now() >= end) {
      throw std::runtime_error(words + ": no " + answer + " in " + said);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::size_t RedisCluster::keys_on(std::size_t node) const {
  return std::stoul(ask(node, "DBSIZE"));
}

void RedisCluster::flush() {
  for (std::size_t i = 0; i < options_.primaries; ++i) require_ok(i, "FLUSHALL");
}

void RedisCluster::begin_move(std::uint16_t slot, std::size_t from, std::size_t to) const {
  const std::string start = "CLUSTER SETSLOT " + std::to_string(slot);
  require_ok(to, start + " IMPORTING " + nodes_[from].id);
  require_ok(from, start + " MIGRATING " + nodes_[to].id);
}

bool RedisCluster::move_keys(std::uint16_t slot, std::size_t from, std::size_t to,
                             int count) const {
  std::string keys = ask(from, "CLUSTER GETKEYSINSLOT " + std::to_string(slot) + " " +
                                   std::to_string(count));
  if (keys.empty()) return false;
  for (char& c : keys) {
    if (c == '\n') c = ' ';
  }
  const std::string auth = options_.password.empty() ? "" : " AUTH " + options_.password;
  const std::string answer =
      ask(from, "MIGRATE 127.0.0.1 " + std::to_string(nodes_[to].server->port()) +
                    " '' 0 10000 REPLACE" + auth + " KEYS " + keys);
  // NOKEY: a key has gone meanwhile.
  if (answer != "OK" && answer != "NOKEY") throw std::runtime_error("MIGRATE: " + answer);
  return true;
}

void RedisCluster::end_move(std::uint16_t slot, std::size_t to) const {
  const std::string words = "CLUSTER SETSLOT " + std::to_string(slot) + " NODE " + nodes_[to].id;
  require_ok(to, words);
  for (std::size_t i = 0; i < options_.primaries; ++i) {
    if (i != to && nodes_[i].server->running()) require_ok(i, words);
  }
}

void RedisCluster::move(std::uint16_t slot, std::size_t from, std::size_t to) const {
  begin_move(slot, from, to);
  while (move_keys(slot, from, to, 10)) {
  }
  end_move(slot, to);
}

}  // namespace speedo::test
