#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/store/memory_store.hpp>
#include <speedo/store/redis_store.hpp>

#include "base/log.hpp"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "support/catch.hpp"
#include "support/redis_server.hpp"

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

// Every kind of store that must pass the conformance suite.
inline const std::vector<std::string>& store_kinds() {
  static const std::vector<std::string> kinds = {"memory", "tcp", "unix", "password"};
  return kinds;
}

// A fresh store of one kind, with the server behind it if there is one.
class StoreUnderTest {
 public:
  explicit StoreUnderTest(const std::string& kind) {
    if (kind == "memory") {
      map_ = std::make_shared<MemoryKeyValue>();
      store_ = another();
      return;
    }
    RedisServer::Options options;
    if (kind == "password") options.password = "se:cret@%1";
    server_.emplace(options);
    if (kind == "password") {
      options_ = quick_options("127.0.0.1:" + std::to_string(server_->port()));
      options_.password = options.password;
    } else {
      options_ = quick_options(kind == "unix" ? server_->unix_uri() : server_->tcp_uri());
    }
    store_ = another();
  }
  // What another process would open: the same job over its own connections.
  std::shared_ptr<ParameterStore> another() const {
    if (map_) return std::make_shared<ChunkedStore>(map_, "test");
    return open(options_);
  }
  ParameterStore& operator*() const { return *store_; }
  ParameterStore* operator->() const { return store_.get(); }

 private:
  std::optional<RedisServer> server_;
  RedisOptions options_;
  std::shared_ptr<MemoryKeyValue> map_;
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

}  // namespace speedo::test
