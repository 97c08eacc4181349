#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/redis_server.hpp"

namespace speedo::test {

// A Redis Cluster of redis-servers on this machine, whose primaries share the slots as redis-cli
// --cluster create would have it. A test whose cluster refuses a command fails. Thread safety: as a
// RedisServer.
class RedisCluster {
 public:
  struct Options {
    std::size_t primaries = 3;
    std::size_t replicas = 0;     // of the first primary
    int node_timeout_ms = 10000;  // a node that is silent for so long is replaced
    std::string password = {};
    std::string extra = {};  // lines of each redis.conf
  };

  RedisCluster() : RedisCluster(Options{}) {}
  explicit RedisCluster(const Options& options);
  RedisCluster(const RedisCluster&) = delete;
  RedisCluster& operator=(const RedisCluster&) = delete;

  std::string address() const;   // of all primaries, as --redis takes it, without a password
  std::size_t primaries() const { return options_.primaries; }
  RedisServer& node(std::size_t index) { return *nodes_[index].server; }
  // The primary that had a slot at first.
  std::size_t first_owner(std::uint16_t slot) const;

  // What a node answers; see ask_redis().
  std::string ask(std::size_t node, const std::string& words) const;
  std::size_t keys_on(std::size_t node) const;
  void flush();
  // Waits until node says that all is well and knows everybody.
  void wait_until_ok() const;

  // The steps of a slot's move: the nodes learn of it, so many of its keys go (false: no more are
  // there), and all nodes learn that it is done.
  void begin_move(std::uint16_t slot, std::size_t from, std::size_t to) const;
  bool move_keys(std::uint16_t slot, std::size_t from, std::size_t to, int count) const;
  void end_move(std::uint16_t slot, std::size_t to) const;
  void move(std::uint16_t slot, std::size_t from, std::size_t to) const;

 private:
  struct Node {
    std::unique_ptr<ReservedPort> bus;
    std::unique_ptr<RedisServer> server;
    std::string id;
  };
  void start_nodes();
  void join();
  void require_ok(std::size_t node, const std::string& words) const;
  void wait_for(std::size_t node, const std::string& words, const std::string& answer) const;

  const Options options_;
  std::vector<Node> nodes_;  // replicas behind the primaries
};

}  // namespace speedo::test
