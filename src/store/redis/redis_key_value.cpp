#include "store/redis/redis_key_value.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <speedo/store/memory_store.hpp>

#include "base/log.hpp"
#include "store/chunked_store.hpp"
#include "store/sharded_key_value.hpp"

namespace speedo {
namespace {

constexpr const char* kScanCount = "1000";
// Manifests, blobs, who is master: they must not wait behind chunks.
constexpr std::size_t kSmallBytes = std::size_t{64} << 10U;

// Calls `attempt` until it succeeds, fails for good or attempts_max is reached.
Result<void> with_retries(const RedisOptions& options,
                          const std::function<Result<void>()>& attempt) {
  auto pause = options.backoff_first;
  for (int tries = 1;; ++tries) {
    auto done = attempt();
    if (done || !is_transient(done.error().code)) return done;
    if (tries >= options.attempts_max) {
      return Error{done.error().code,
                   done.error().message + " (" + std::to_string(tries) + " attempts)"};
    }
    if (tries == 1) SPEEDO_WARN("{}; trying again", done.error().message);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, options.backoff_max);
  }
}

// Weights that the server may throw away would be lost without a word. Servers that do not let us
// ask are trusted.
Result<void> check_eviction(RedisSession& session, const RedisOptions& options) {
  auto answer = session.command({"CONFIG", "GET", "maxmemory-policy"});
  if (!answer) {
    if (is_transient(answer.error().code)) return answer.error();
    return {};
  }
  const redisReply& reply = **answer;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2) return {};
  const std::string policy(reply.element[1]->str, reply.element[1]->len);
  if (policy == "noeviction") return {};
  return Error{ErrorCode::kConfig,
               "Redis at " + to_string(options.address) + " has maxmemory-policy " + policy +
                   ", which throws weights away when memory is short: CONFIG SET "
                   "maxmemory-policy noeviction"};
}

std::string escape_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\^").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Result<std::vector<std::string>> keys_matching(RedisSession& session, const std::string& pattern) {
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    SPEEDO_ASSIGN(const RedisSession::Reply reply,
                  session.command({"SCAN", cursor, "MATCH", pattern, "COUNT", kScanCount}));
    const bool expected = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                          reply->element[0]->type == REDIS_REPLY_STRING &&
                          reply->element[1]->type == REDIS_REPLY_ARRAY;
    if (!expected) return Error{ErrorCode::kInternal, "Redis answered SCAN in an unknown form"};
    cursor.assign(reply->element[0]->str, reply->element[0]->len);
    for (std::size_t i = 0; i < reply->element[1]->elements; ++i) {
      const redisReply& key = *reply->element[1]->element[i];
      keys.emplace_back(key.str, key.len);
    }
  } while (cursor != "0");
  return keys;
}

}  // namespace

RedisKeyValue::RedisKeyValue(const RedisOptions& options, std::unique_ptr<RedisSession> session)
    : options_(options), incarnations_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  for (int i = 0; i < std::max(1, options.connections); ++i) {
    connections_.push_back(
        std::make_unique<RedisConnection>(options, std::move(session), incarnations_));
  }
}

Result<std::shared_ptr<RedisKeyValue>> RedisKeyValue::open(const RedisOptions& options) {
  std::unique_ptr<RedisSession> session;
  SPEEDO_TRY(with_retries(options, [&]() -> Result<void> {
    SPEEDO_ASSIGN(session, RedisSession::connect(options, std::nullopt));
    return check_eviction(*session, options);
  }));
  return std::shared_ptr<RedisKeyValue>(new RedisKeyValue(options, std::move(session)));
}

void RedisKeyValue::submit(KvPtr operation) {
  const auto least =
      std::min_element(connections_.begin(), connections_.end(),
                       [](const auto& a, const auto& b) { return a->load() < b->load(); });
  if (operation->bytes() <= kSmallBytes && (*least)->load() > kSmallBytes) {
    small_connection().submit(std::move(operation));
  } else {
    (*least)->submit(std::move(operation));
  }
}

RedisConnection& RedisKeyValue::small_connection() {
  const std::lock_guard lock(mutex_);
  if (!small_) {
    RedisOptions options = options_;
    options.limit = nullptr;
    small_ = std::make_unique<RedisConnection>(options, nullptr, incarnations_);
    if (hurried_) small_->stop_waiting();
  }
  return *small_;
}

Result<std::vector<std::string>> RedisKeyValue::list(std::string_view prefix) {
  std::vector<std::string> keys;
  SPEEDO_TRY(with_retries(options_, [&]() -> Result<void> {
    SPEEDO_ASSIGN(const std::unique_ptr<RedisSession> session,
                  RedisSession::connect(options_, std::nullopt));
    SPEEDO_ASSIGN(keys, keys_matching(*session, escape_pattern(prefix) + "*"));
    return {};
  }));
  return keys;
}

void RedisKeyValue::stop_waiting() {
  for (const auto& connection : connections_) connection->stop_waiting();
  const std::lock_guard lock(mutex_);
  hurried_ = true;
  if (small_) small_->stop_waiting();
}

Result<std::shared_ptr<ParameterStore>> open_redis_store(const RedisOptions& options,
                                                         const std::string& job) {
  return open_redis_store(std::vector{options}, job);
}

Result<std::shared_ptr<ParameterStore>> open_redis_store(const std::vector<RedisOptions>& servers,
                                                         const std::string& job) {
  SPEEDO_ASSERT(!servers.empty());
  SPEEDO_TRY(check_job_name(job));
  std::vector<std::shared_ptr<KeyValue>> maps;
  for (const RedisOptions& options : servers) {
    SPEEDO_ASSIGN(std::shared_ptr<RedisKeyValue> map, RedisKeyValue::open(options));
    maps.push_back(std::move(map));
  }
  const std::shared_ptr<KeyValue> map =
      maps.size() == 1 ? maps.front() : std::make_shared<ShardedKeyValue>(std::move(maps), job);
  return std::shared_ptr<ParameterStore>(std::make_shared<ChunkedStore>(map, job));
}

}  // namespace speedo
