#pragma once

#include <chrono>
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

// Where a Redis server is, and which of its databases is meant.
struct RedisAddress {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string unix_path;  // not empty: used instead of host and port
  int db = 0;
};

// What opens it. Without a user the password is that of the default user (requirepass).
struct RedisCredentials {
  std::string user;
  Secret password;
};

struct RedisOptions {
  RedisAddress address;
  RedisCredentials credentials;
  int connections = 2;  // so that the server has work while one of them waits
  int attempts_max = kStoreAttemptsMax;
  std::chrono::milliseconds connect_timeout = kStoreConnectTimeout;
  std::chrono::milliseconds command_timeout = kStoreCommandTimeout;
  std::chrono::milliseconds backoff_first = kStoreBackoffFirst;
  std::chrono::milliseconds backoff_max = kStoreBackoffMax;
  std::string source = {};  // numeric address to connect from; empty: as the system likes
  // Of all that the process exchanges with its stores, but for small operations; null: none.
  std::shared_ptr<TrafficLimit> limit = nullptr;
};

// [USER[:PASSWORD]@] and HOST, HOST:PORT or [IPV6]:PORT; the same behind redis://, with a [/DB] at
// the end; or unix://[USER[:PASSWORD]@]/PATH[?db=N]. User and password are percent-encoded. No
// error repeats them. Error: kUsage.
Result<RedisAddress> parse_redis_address(std::string_view address);  // passes over user, password
Result<RedisCredentials> parse_redis_user_info(std::string_view user_info);
Result<RedisOptions> parse_redis_uri(std::string_view uri);  // both

// As parse_redis_address() takes it: host and port, or what says the rest too.
std::string to_string(const RedisAddress& address);

// Whether somebody accepts connections there, or might, being slow. No reply is waited for.
bool is_somebody_at(const RedisAddress& address);

// Connects, checks that the server may be written and does not evict keys. Connections that break
// later are made again; see ParameterStore for what is retried.
// Errors: kUnavailable, kTimeout, kRefused (password, permission), kUsage (bad job name), kConfig
// (an evicting maxmemory-policy, a database that does not exist).
Result<std::shared_ptr<ParameterStore>> open_redis_store(const RedisOptions& options,
                                                         const std::string& job);
// The same of a job that is spread over several servers (store/layout.hpp): records by chunks, all
// else on the first. Errors: also kUsage for two that are one, or too many. Requires: one or more.
Result<std::shared_ptr<ParameterStore>> open_redis_store(const std::vector<RedisOptions>& servers,
                                                         const std::string& job);

// One address or several, as --redis takes them: ADDRESS[,ADDRESS]... Error: kUsage.
Result<std::vector<RedisAddress>> parse_redis_addresses(std::string_view addresses);
std::string to_string(const std::vector<RedisAddress>& addresses);

}  // namespace speedo
