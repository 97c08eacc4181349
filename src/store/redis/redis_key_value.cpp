#include "store/redis/redis_key_value.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/store/memory_store.hpp>

#include "store/chunked_store.hpp"
#include "store/redis/cluster_key_value.hpp"
#include "store/redis/key_scan.hpp"
#include "store/redis/key_slot.hpp"
#include "store/redis/node_checks.hpp"
#include "store/redis/redis_retry.hpp"
#include "store/sharded_key_value.hpp"

namespace speedo {
namespace {

Result<std::shared_ptr<KeyValue>> open_map(const std::vector<RedisOptions>& servers,
                                           const std::string& job) {
  if (servers.front().address.is_cluster) {
    SPEEDO_ASSIGN(std::shared_ptr<ClusterKeyValue> cluster, ClusterKeyValue::open(servers));
    return std::shared_ptr<KeyValue>(
        std::make_shared<ShardedKeyValue>(std::move(cluster), part_tags(job)));
  }
  std::vector<std::shared_ptr<KeyValue>> maps;
  for (const RedisOptions& options : servers) {
    SPEEDO_ASSIGN(std::shared_ptr<RedisKeyValue> map, RedisKeyValue::open(options));
    maps.push_back(std::move(map));
  }
  if (maps.size() == 1) return maps.front();
  return std::shared_ptr<KeyValue>(std::make_shared<ShardedKeyValue>(std::move(maps), job));
}

}  // namespace

RedisKeyValue::RedisKeyValue(const RedisOptions& options, std::unique_ptr<RedisSession> session)
    : options_(options), connections_(options, std::move(session)) {}

Result<std::shared_ptr<RedisKeyValue>> RedisKeyValue::open(const RedisOptions& options) {
  std::unique_ptr<RedisSession> session;
  const auto opened = opened_with_retries(options, [&]() -> Result<void> {
    SPEEDO_ASSIGN(session, RedisSession::connect(options, std::nullopt));
    SPEEDO_TRY(check_is_guarded(options, *session));
    SPEEDO_TRY(check_is_alone(*session));
    return check_fitness(*session);
  });
  SPEEDO_TRY(opened);
  return std::shared_ptr<RedisKeyValue>(new RedisKeyValue(options, std::move(session)));
}

void RedisKeyValue::submit(KvPtr operation) {
  connections_.submit(RedisTask{.operation = std::move(operation)});
}

Result<std::vector<std::string>> RedisKeyValue::list(std::string_view prefix) {
  std::vector<std::string> keys;
  const auto has_no_patience = [this] {
    const Clock::time_point hurried_at = hurried_at_;
    return hurried_at != Clock::time_point{} &&
           Clock::now() >= hurried_at + std::min(options_.command_timeout, kStoreEndPatience);
  };
  SPEEDO_TRY(with_retries(options_, has_no_patience, [&]() -> Result<void> {
    SPEEDO_ASSIGN(const std::unique_ptr<RedisSession> session,
                  RedisSession::connect(options_, std::nullopt));
    SPEEDO_ASSIGN(keys, scan_keys(*session, prefix));
    return {};
  }));
  return keys;
}

void RedisKeyValue::stop_waiting() {
  Clock::time_point never{};
  hurried_at_.compare_exchange_strong(never, Clock::now());
  connections_.stop_waiting();
}

Result<std::shared_ptr<ParameterStore>> open_redis_store(const RedisOptions& options,
                                                         const std::string& job) {
  return open_redis_store(std::vector{options}, job);
}

Result<std::shared_ptr<ParameterStore>> open_redis_store(const std::vector<RedisOptions>& servers,
                                                         const std::string& job) {
  SPEEDO_ASSERT(!servers.empty());
  SPEEDO_TRY(check_job_name(job));
  SPEEDO_ASSIGN(const std::shared_ptr<KeyValue> map, open_map(servers, job));
  return std::shared_ptr<ParameterStore>(std::make_shared<ChunkedStore>(map, job));
}

}  // namespace speedo
