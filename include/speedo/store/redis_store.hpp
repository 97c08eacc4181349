#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>
#include <speedo/base/secret.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

class TrafficLimit;

// Where a Redis Sentinel is.
struct RedisSentinel {
  std::string host;
  int port = 26379;
};

// Where a Redis server is, and which of its databases is meant.
struct RedisAddress {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string unix_path;  // not empty: used instead of host and port
  int db = 0;
  // A node of a Redis Cluster, which names the others: then `db` is 0, and there is no path.
  bool is_cluster = false;
  bool is_tls = false;  // rediss://: it speaks TLS alone
  // Not empty: the server is the primary that these Sentinels know as `primary`, wherever that is;
  // host and port are not used.
  std::vector<RedisSentinel> sentinels;
  std::string primary;
};

// For TLS: by whose certificates (PEM) the server's is judged, lists of revoked ones among them, by
// the system's if none is named; and the own certificate, which a server may ask for, with its key.
struct RedisTlsFiles {
  std::filesystem::path authority, certificate, key;
  bool any() const { return !authority.empty() || !certificate.empty(); }
};

// What opens it. Without a user the password is that of the default user (requirepass).
struct RedisCredentials {
  std::string user;
  Secret password;
  // The password as it is at present, for each connection; the other one is tried where this cannot
  // be had, or is refused. Null: it does not change.
  std::function<Result<Secret>()> renew = nullptr;
};

struct RedisOptions {
  RedisAddress address;
  RedisCredentials credentials;
  RedisTlsFiles tls = {};
  // Also one that a network reaches and that lets in whoever comes.
  bool may_be_open = false;
  int connections = 2;  // so that the server has work while one of them waits
  int attempts_max = kStoreAttemptsMax;
  int opening_attempts_max = 0;  // of opening the store; 0: attempts_max
  std::chrono::milliseconds connect_timeout = kStoreConnectTimeout;
  std::chrono::milliseconds command_timeout = kStoreCommandTimeout;
  std::chrono::milliseconds backoff_first = kStoreBackoffFirst;
  std::chrono::milliseconds backoff_max = kStoreBackoffMax;
  std::string source = {};  // numeric address to connect from; empty: as the system likes
  // Of all that the process exchanges with its stores, but for small operations; null: none.
  std::shared_ptr<TrafficLimit> limit = nullptr;
};

// [USER[:PASSWORD]@] and HOST, HOST:PORT or [IPV6]:PORT; the same behind redis://, with a [/DB] at
// the end; or unix://[USER[:PASSWORD]@]/PATH[?db=N]; or redis-cluster:// as redis://, without /DB;
// or redis-sentinel:// with HOST[:PORT][,HOST[:PORT]]... of Sentinels and /PRIMARY, the name of
// what they watch. With rediss:// and the like the same by TLS.
// User and password are percent-encoded. No error repeats them. Error: kUsage.
Result<RedisAddress> parse_redis_address(std::string_view address);  // passes over user, password
Result<RedisCredentials> parse_redis_user_info(std::string_view user_info);
Result<RedisOptions> parse_redis_uri(std::string_view uri);  // both

// As parse_redis_address() takes it: host and port, or what says the rest too. Of a cluster's node
// host and port.
std::string to_string(const RedisAddress& address);

// Whether somebody accepts connections there, or might, being slow. No reply is waited for.
bool is_somebody_at(const RedisAddress& address);

// Connects, checks that the server may be written and does not evict keys. Connections that break
// later are made again; see ParameterStore for what is retried.
// Errors: kUnavailable, kTimeout, kRefused (password, permission), kUsage (bad job name), kConfig
// (an evicting maxmemory-policy, an old version, a database that does not exist, a node of a Redis
// Cluster that was given as a server of its own, or the other way round); kRefused also for one
// that a network reaches and that asks for no password, unless it may_be_open.
Result<std::shared_ptr<ParameterStore>> open_redis_store(const RedisOptions& options,
                                                         const std::string& job);
// The same of a job that is spread over several servers (store/layout.hpp): records by chunks, all
// else on the first. Or of one on a Redis Cluster: `servers` are some of its nodes, the others are
// learned and reached with the first one's options. Errors: also kUsage for two that are one, or
// too many; kUnavailable for a cluster that has lost slots. Requires: one or more; all or none of
// them nodes of a cluster.
Result<std::shared_ptr<ParameterStore>> open_redis_store(const std::vector<RedisOptions>& servers,
                                                         const std::string& job);

// One address or several, as --redis takes them: ADDRESS[,ADDRESS]..., or nodes of one cluster:
// redis-cluster://HOST[:PORT][,HOST[:PORT]]... Error: kUsage.
Result<std::vector<RedisAddress>> parse_redis_addresses(std::string_view addresses);
// Parts that a job has on them: as many as servers, or kClusterParts.
std::size_t part_count(const std::vector<RedisAddress>& addresses);
std::string to_string(const std::vector<RedisAddress>& addresses);

}  // namespace speedo
