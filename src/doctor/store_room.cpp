#include "doctor/store_room.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/memory_limit.hpp"

namespace speedo {

namespace {

constexpr const char* kCheck = "redis memory";

Finding not_checked(const std::string& why) {
  return {kCheck, Health::kOk, "its memory was not checked: " + why};
}

Finding check_one(const RedisOptions& server, const StoreNeed& need) {
  RedisOptions asked = server;
  asked.address.is_cluster = false;
  const auto memory = ask_redis_memory(asked);
  if (!memory) return not_checked(memory.error().message);
  if (!*memory) return not_checked("it may not be asked for it (ACL SETUSER NAME +info)");
  return judge_room(**memory, need);
}

}  // namespace

RedisLimit limit_of(const RedisMemory& memory) {
  if (memory.max > 0) return {memory.max, "maxmemory"};
  return {memory.machine, "its machine has"};
}

Finding judge_room(const RedisMemory& memory, const StoreNeed& need) {
  const auto [most, name] = limit_of(memory);
  if (most == 0) return not_checked("it does not say how much it may have");
  const std::int64_t least = redis_bytes(need.least);
  const std::int64_t all = redis_bytes(need.all + need.on_its_way);
  const std::string what = fmt::format(
      "{} {}, of which {} are in use; the job stores {} there, and with what its workers send by "
      "way of it up to {}",
      name, format_bytes(most), format_bytes(memory.used), format_bytes(least), format_bytes(all));
  const char* remedy =
      "raise maxmemory, use a server with more memory or several (--redis A,B), or fewer workers";
  if (least > most) return {kCheck, Health::kProblem, what, remedy};
  if (all > most - memory.used) return {kCheck, Health::kWarning, what, remedy};
  return {kCheck, Health::kOk, what};
}

Finding check_room(const std::vector<RedisOptions>& servers, const StoreNeed& need) {
  std::vector<RedisOptions> all = servers;
  if (servers.front().address.is_cluster) {
    const auto primaries = ask_primaries(servers);
    if (!primaries) return not_checked(primaries.error().message);
    all.assign(primaries->size(), servers.front());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].address = (*primaries)[i];
  }
  const auto count = static_cast<std::int64_t>(all.size());
  Finding worst;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Finding each =
        check_one(all[i], {need.least / count, need.all / count, need.on_its_way});
    if (count > 1) each.what = to_string(all[i].address) + ": " + each.what;
    if (i == 0 || each.health > worst.health) worst = std::move(each);
  }
  return worst;
}

}  // namespace speedo
