#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>
#include <speedo/base/secret.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

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

}  // namespace speedo
