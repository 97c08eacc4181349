#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/store/memory_store.hpp>
#include <speedo/store/redis_store.hpp>

#include "base/log.hpp"
#include "store/chunk_range.hpp"
#include "store/chunked_store.hpp"
#include "store/mastership.hpp"
#include "store/memory_key_value.hpp"
#include "store/sharded_key_value.hpp"
#include "store/redis/cluster_key_value.hpp"
#include "store/redis/key_slot.hpp"
#include "store/redis/redis_key_value.hpp"
#include "store/redis/redis_session.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/poll.hpp"
#include "support/redis_ask.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"
#include "support/redis_tls.hpp"

namespace speedo::test {

// Retries end within a second or so: tests do not wait for people.
inline RedisOptions quick_options(const std::string& uri) {
  // The logger is made here and not by the first of the store's threads that warns: the library
  // that makes it is not instrumented, which the thread sanitizer takes for a race.
  static const bool logging = (set_up_logging(), true);
  REQUIRE(logging);
  auto options = parse_redis_uri(uri);
  REQUIRE(options.has_value());
  options->backoff_first = std::chrono::milliseconds(10);
  options->backoff_max = std::chrono::milliseconds(100);
  options->connect_timeout = std::chrono::milliseconds(500);
  options->command_timeout = std::chrono::milliseconds(1000);
  return *options;
}
inline std::shared_ptr<ParameterStore> open(const RedisOptions& options,
                                            const std::string& job = "test") {
  auto store = open_redis_store(options, job);
  INFO((store ? "" : store.error().message));
  REQUIRE(store.has_value());
  return *store;
}

inline std::shared_ptr<ParameterStore> open(const std::string& uri,
                                            const std::string& job = "test") {
  return open(quick_options(uri), job);
}

// The number that a command of one key answers. An error reply is the only one that can be read
// without hiredis.
inline int number_of(const RedisOptions& options, const std::string& word, const std::string& key) {
  const auto session = RedisSession::connect(options, std::nullopt);
  REQUIRE(session.has_value());
  const auto reply = (*session)->command(
      {"EVAL", "return redis.error_reply('NUMBER ' .. redis.call('" + word + "', KEYS[1]))", "1",
       key});
  REQUIRE_FALSE(reply.has_value());
  const std::string& text = reply.error().message;
  const std::string before = "NUMBER ";
  const std::size_t at = text.find(before);
  REQUIRE(at != std::string::npos);
  return std::stoi(text.substr(at + before.size()));
}
inline bool has_key(const RedisOptions& options, const std::string& key) {
  return number_of(options, "EXISTS", key) == 1;
}

// Every kind of store that must pass the conformance suite.
inline const std::vector<std::string>& store_kinds() {
  static const std::vector<std::string> kinds = {"memory", "tcp", "unix", "password",
                                                 "two in memory", "three servers",
                                                 "cluster", "tls"};
  return kinds;
}

// One for all tests of a program: a new cluster takes no writes for two seconds.
inline RedisCluster& common_cluster() {
  static RedisCluster cluster;
  return cluster;
}

// Of nodes that redis-cluster:// names.
inline std::vector<RedisOptions> cluster_options(const std::string& address) {
  std::vector<RedisOptions> all;
  const auto nodes = parse_redis_addresses(address);
  REQUIRE(nodes.has_value());
  for (const RedisAddress& node : *nodes) {
    all.push_back(quick_options("127.0.0.1"));
    all.back().address = node;
  }
  return all;
}

// The servers of a kind of store, for all tests of a program: one a test would be 25 ms of it.
class CommonServers {
 public:
  explicit CommonServers(const std::string& kind) {
    RedisServer::Options first;
    if (kind == "password") first.password = "se:cret@%1";
    if (kind == "tls") first.extra = tls_.emplace().lines();
    start(first);
    while (kind == "three servers" && servers_.size() < 3) start({});
    RedisOptions& options = options_.front();
    if (kind == "unix") options = quick_options(servers_.front()->unix_uri());
    if (kind == "password") options.credentials.password = Secret(first.password);
    if (kind == "tls") {
      options = quick_options(tls_->address());
      options.tls = tls_->files();
    }
    password_ = first.password;
  }
  // As who connects needs them, of each server.
  const std::vector<RedisOptions>& options() const { return options_; }
  void flush() const {
    for (const auto& server : servers_) {
      REQUIRE(ask_redis(server->port(), "FLUSHALL", password_) == "OK");
    }
  }

 private:
  void start(const RedisServer::Options& options) {
    servers_.push_back(std::make_unique<RedisServer>(options));
    options_.push_back(quick_options("127.0.0.1:" + std::to_string(servers_.back()->port())));
  }

  std::optional<RedisTls> tls_;
  std::string password_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<RedisOptions> options_;
};
inline CommonServers& common_servers(const std::string& kind) {
  static std::map<std::string, CommonServers> all;
  const auto found = all.find(kind);
  return found != all.end() ? found->second : all.emplace(kind, kind).first->second;
}

// An empty store of one kind, with the server behind it if there is one.
class StoreUnderTest {
 public:
  explicit StoreUnderTest(const std::string& kind) {
    if (kind == "memory" || kind == "two in memory") {
      map_ = std::make_shared<MemoryKeyValue>(*clock_);
      if (kind != "memory") {
        map_ = std::make_shared<ShardedKeyValue>(
            std::vector<std::shared_ptr<KeyValue>>{map_, std::make_shared<MemoryKeyValue>(*clock_)},
            "test");
      }
      store_ = another();
      return;
    }
    if (kind == "cluster") {
      common_cluster().flush();
      is_cluster_ = true;
      servers_ = cluster_options(common_cluster().address());
      const std::size_t first = common_cluster().first_owner(key_slot("test"));
      options_ = quick_options(common_cluster().node(first).tcp_uri());
      store_ = another();
      return;
    }
    common_servers(kind).flush();
    servers_ = common_servers(kind).options();
    options_ = servers_.front();
    store_ = another();
  }
  // What another process would open: the same job over its own connections.
  std::shared_ptr<ParameterStore> another() const {
    if (map_) return std::make_shared<ChunkedStore>(map_, "test");
    auto store = open_redis_store(servers_, "test");
    REQUIRE(store.has_value());
    return *store;
  }
  // The map that the store is made of, over connections of its own.
  std::shared_ptr<KeyValue> map() const {
    if (map_) return map_;
    if (is_cluster_) {
      auto map = ClusterKeyValue::open(servers_);
      REQUIRE(map.has_value());
      return std::make_shared<ShardedKeyValue>(*map, part_tags("test"));
    }
    std::vector<std::shared_ptr<KeyValue>> maps;
    for (const RedisOptions& each : servers_) {
      auto map = RedisKeyValue::open(each);
      REQUIRE(map.has_value());
      maps.push_back(*map);
    }
    if (maps.size() == 1) return maps.front();
    return std::make_shared<ShardedKeyValue>(std::move(maps), "test");
  }
  // Until the job's lease is over. In memory it is the clock that goes on, a server has its own.
  void wait_for_end_of_lease() const {
    if (map_) return clock_->advance(std::chrono::seconds(1));
    poll_until([&] { return !has_key(options_, lease_key("test")); });
  }
  ParameterStore& operator*() const { return *store_; }
  ParameterStore* operator->() const { return store_.get(); }

 private:
  const std::unique_ptr<ManualClock> clock_ = std::make_unique<ManualClock>();
  std::vector<RedisOptions> servers_;  // or a cluster's nodes
  bool is_cluster_ = false;
  RedisOptions options_;               // of the server that has the lease
  std::shared_ptr<KeyValue> map_;
  std::shared_ptr<ParameterStore> store_;
};

inline constexpr Digest kModel{1, 2};

// `count` floats that depend on the place and on `version`.
inline std::vector<float> pattern(std::size_t count, std::uint64_t version) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i % 65521) + static_cast<float>(version);
  }
  return values;
}

inline RecordInfo info_of(std::uint64_t version, std::size_t count) {
  RecordInfo info;
  info.model = kModel;
  info.version = version;
  info.element_count = count;
  return info;
}

template <class T>
ErrorCode code_of(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().code;
}

// Succeeds, or fails the test with the error's message.
template <class T>
void require(const Result<T>& result) {
  INFO((result ? "" : result.error().message));
  REQUIRE(result.has_value());
}

inline WrittenPart write_part_of(ParameterStore& store, const std::vector<float>& values,
                                 std::uint64_t version, RecordPart where) {
  const RecordInfo info = info_of(version, values.size());
  const auto writer = store.write_part("weights", info, where);
  for (std::size_t chunk = where.part; chunk < chunk_count(values.size());
       chunk += store.parts()) {
    writer->write(chunk, chunk_of(std::span<const float>(values), chunk));
  }
  auto written = writer->finish();
  require(written);
  return *written;
}

// Keeps trying for as long as a server may take to come back.
inline RedisOptions patient(const std::string& uri) {
  RedisOptions options = quick_options(uri);
  options.attempts_max = 100;
  return options;
}

// Empty, or what the server had against it.
inline std::string command(const RedisServer& server, const std::vector<std::string>& words) {
  auto session = RedisSession::connect(quick_options(server.tcp_uri()), std::nullopt);
  require(session);
  const auto reply = (*session)->command(words);
  return reply ? "" : reply.error().message;
}

}  // namespace speedo::test
