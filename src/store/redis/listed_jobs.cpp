#include <speedo/store/listed_jobs.hpp>

#include <map>
#include <set>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/store/memory_store.hpp>

#include "store/mastership.hpp"
#include "store/record_codec.hpp"
#include "store/redis/cluster_key_value.hpp"
#include "store/redis/redis_key_value.hpp"

namespace speedo {
namespace {

// SCAN may name a key twice.
Result<std::set<std::string>> all_keys(const std::vector<RedisOptions>& servers) {
  std::vector<std::shared_ptr<KeyValue>> maps;
  if (servers.front().address.is_cluster) {
    SPEEDO_ASSIGN(maps.emplace_back(), ClusterKeyValue::open(servers));
  } else {
    for (const RedisOptions& server : servers) {
      SPEEDO_ASSIGN(maps.emplace_back(), RedisKeyValue::open(server));
    }
  }
  std::set<std::string> keys;
  for (const auto& map : maps) {
    SPEEDO_ASSIGN(std::vector<std::string> listed, map->list(kJobKeyStart));
    keys.insert(std::make_move_iterator(listed.begin()), std::make_move_iterator(listed.end()));
  }
  return keys;
}

}  // namespace

Result<std::vector<ListedJob>> list_jobs(const std::vector<RedisOptions>& servers) {
  SPEEDO_ASSERT(!servers.empty());
  SPEEDO_ASSIGN(const std::set<std::string> keys, all_keys(servers));
  std::map<std::string, ListedJob> jobs;
  for (const std::string& key : keys) {
    const std::string name = job_of_record_key(key);
    if (!check_job_name(name)) continue;
    jobs[name].name = name;
    jobs[name].keys += 1;
  }
  std::vector<ListedJob> listed;
  for (auto& [name, job] : jobs) {
    job.has_master = keys.contains(lease_key(name));
    listed.push_back(std::move(job));
  }
  return listed;
}

}  // namespace speedo
