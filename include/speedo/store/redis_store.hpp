#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

// Where a Redis server is and how to talk to it.
struct RedisOptions {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string unix_path;  // not empty: used instead of host and port
  std::string user, password;
  int db = 0;
  int connections = 2;  // so that the server has work while one of them waits
  int attempts_max = kStoreAttemptsMax;
  std::chrono::milliseconds connect_timeout = kStoreConnectTimeout;
  std::chrono::milliseconds command_timeout = kStoreCommandTimeout;
  std::chrono::milliseconds backoff_first = kStoreBackoffFirst;
  std::chrono::milliseconds backoff_max = kStoreBackoffMax;
};

// HOST, HOST:PORT, [IPV6]:PORT, redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], unix:///PATH (also
// unix://[[USER]:PASSWORD@]/PATH?db=N). Errors: kUsage; kUnsupported for rediss://.
Result<RedisOptions> parse_redis_uri(const std::string& uri);

// The address without the password, for messages and logs.
std::string to_string(const RedisOptions& options);

// Connects, checks that the server may be written and does not evict keys. Connections that break
// later are made again; see ParameterStore for what is retried.
// Errors: kUnavailable, kTimeout, kRefused (password, permission), kUsage (bad job name), kConfig
// (an evicting maxmemory-policy, a database that does not exist).
Result<std::shared_ptr<ParameterStore>> open_redis_store(const RedisOptions& options,
                                                         const std::string& job);

}  // namespace speedo
