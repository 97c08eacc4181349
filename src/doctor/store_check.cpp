#include "doctor/store_check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/memory_limit.hpp"
#include "base/parse_number.hpp"
#include "doctor/store_room.hpp"

namespace speedo {

namespace {

const char* remedy_for(ErrorCode code) {
  if (code == ErrorCode::kRefused) {
    return "give the server's password: --redis-password-file FILE, or SPEEDO_REDIS_PASSWORD";
  }
  if (code == ErrorCode::kConfig) return "name a database that the server has";
  return "start one there (redis-server conf/redis.conf), or name another with --redis";
}

Finding judge_version(const RedisFacts& facts) {
  const std::string major = facts.version.substr(0, facts.version.find('.'));
  const auto number = parse_number<int>(major);
  if (!number) {
    return {"redis version", Health::kWarning, "the server does not say its version",
            "let its user ask for it: ACL SETUSER NAME +info"};
  }
  if (*number >= kRedisMajorMin) return {"redis version", Health::kOk, facts.version};
  return {"redis version", Health::kProblem, facts.version,
          fmt::format("use Redis {} or newer", kRedisMajorMin)};
}

Finding judge_policy(const RedisFacts& facts) {
  const std::string what = facts.policy.empty() ? "not said" : "maxmemory-policy " + facts.policy;
  if (facts.policy == "noeviction") return {"redis policy", Health::kOk, what};
  const Health health = facts.policy.empty() ? Health::kWarning : Health::kProblem;
  return {"redis policy", health, what,
          "set maxmemory-policy noeviction (conf/redis.conf): a server that evicts keys would lose "
          "the weights"};
}

Finding judge_access(const RedisFacts& facts) {
  if (!facts.is_open) {
    return {"redis access", Health::kOk, "this machine alone, or those who have a password"};
  }
  return {"redis access", Health::kProblem, "a network reaches it, and it asks for no password",
          "set one (requirepass, or conf/redis-acl.conf) and give --redis-password-file FILE, or "
          "start the master with --insecure-redis"};
}

Finding judge_memory(const RedisFacts& facts, std::int64_t needed_bytes) {
  const auto [most, name] = limit_of(facts.memory);
  const std::int64_t free = std::max<std::int64_t>(0, most - facts.memory.used);
  const std::int64_t needed = redis_bytes(needed_bytes);
  std::string what = fmt::format("{} in use, {} {}", format_bytes(facts.memory.used), name,
                                 most > 0 ? format_bytes(most) : "an unknown amount");
  if (needed_bytes > 0) what += fmt::format("; the job stores {}", format_bytes(needed));
  if (most == 0 || needed <= free) return {"redis memory", Health::kOk, what};
  return {"redis memory", Health::kProblem, what,
          "raise maxmemory, use a server with more memory, or free what it holds"};
}

Finding judge_persistence(const RedisFacts& facts) {
  if (!facts.saves) {
    return {"redis persistence", Health::kOk, "the server does not say whether it saves"};
  }
  if (!facts.appends && facts.saves->empty()) {
    return {"redis persistence", Health::kOk, "off: the master holds the weights"};
  }
  return {
      "redis persistence", Health::kWarning,
      facts.appends ? "appendonly is on" : "it saves at \"" + *facts.saves + "\"",
      "switch it off (save \"\", appendonly no): every merge is new, so it writes all weights to "
      "disk again and again, and a fork for that may double its memory"};
}

Finding judge_role(const RedisFacts& facts, const RedisAddress& address) {
  const std::string where = "Redis at " + to_string(address);
  if (!address.is_cluster && facts.cluster_primaries > 1) {
    return {"redis", Health::kProblem,
            fmt::format("{} is a node of a Redis Cluster of {} primaries", where,
                        facts.cluster_primaries),
            "name it so: --redis redis-cluster://" + to_string(address)};
  }
  if (facts.is_replica) {
    return {"redis", Health::kProblem, where + " is a replica, which takes no writes",
            "name its master with --redis"};
  }
  if (facts.is_loading) {
    return {"redis", Health::kWarning, where + " is still loading its data",
            "wait until it has: the programs do so up to --store-timeout"};
  }
  if (facts.cannot_save) {
    return {"redis", Health::kProblem, where + " cannot save to its disk, and takes no writes",
            "make room there, or CONFIG SET stop-writes-on-bgsave-error no: the programs wait for "
            "it up to --store-timeout"};
  }
  return {"redis", Health::kOk, where + " answers"};
}

Finding judge_no_cluster(const Error& error) {
  const char* remedy =
      "start its nodes, or name others with --redis redis-cluster://HOST:PORT[,HOST:PORT]...";
  if (error.code == ErrorCode::kRefused) remedy = remedy_for(error.code);
  if (error.code == ErrorCode::kConfig) {
    remedy = "name nodes of a Redis Cluster, or the server without redis-cluster://";
  }
  return {"redis cluster", Health::kProblem, error.message, remedy};
}

// Of two findings of one check the earlier one stays, unless the other is worse.
void keep_worst(Finding finding, Findings& findings) {
  const auto same = std::find_if(findings.begin(), findings.end(), [&](const Finding& each) {
    return each.check == finding.check;
  });
  if (same == findings.end()) {
    findings.push_back(std::move(finding));
  } else if (finding.health > same->health) {
    *same = std::move(finding);
  }
}

}  // namespace

Findings judge_redis(const RedisFacts& facts, std::int64_t needed_bytes) {
  return {judge_version(facts), judge_access(facts), judge_policy(facts),
          judge_memory(facts, needed_bytes),
          judge_persistence(facts)};
}

Findings check_redis(const RedisOptions& options, std::int64_t needed_bytes) {
  // What is asked here is what opening a cluster's node would refuse.
  RedisOptions asked = options;
  asked.address.is_cluster = false;
  const auto facts = ask_redis(asked);
  if (!facts) {
    return {{"redis", Health::kProblem, facts.error().message, remedy_for(facts.error().code)}};
  }
  Findings findings = {judge_role(*facts, options.address)};
  for (Finding& each : judge_redis(*facts, needed_bytes)) findings.push_back(std::move(each));
  return findings;
}

Findings check_store(const std::vector<RedisOptions>& servers, std::int64_t needed_bytes) {
  std::vector<RedisOptions> all = servers;
  Findings findings;
  if (servers.front().address.is_cluster) {
    const auto primaries = ask_primaries(servers);
    if (!primaries) return {judge_no_cluster(primaries.error())};
    findings.push_back({"redis cluster", Health::kOk,
                        fmt::format("{} primaries serve all slots", primaries->size())});
    all.assign(primaries->size(), servers.front());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].address = (*primaries)[i];
  }
  const auto share = needed_bytes / static_cast<std::int64_t>(all.size());
  for (const RedisOptions& server : all) {
    for (Finding& each : check_redis(server, share)) {
      if (all.size() > 1) each.what = to_string(server.address) + ": " + each.what;
      keep_worst(std::move(each), findings);
    }
  }
  return findings;
}

}  // namespace speedo
