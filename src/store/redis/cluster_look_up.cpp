#include "store/redis/cluster_look_up.hpp"

#include <hiredis/hiredis.h>

#include <chrono>
#include <optional>
#include <string>

#include "store/redis/key_scan.hpp"
#include "store/redis/node_checks.hpp"

namespace speedo {
namespace {

using Sessions = std::vector<std::unique_ptr<RedisSession>>;
using Ask = std::function<Result<SlotMap>(RedisSession&, const RedisAddress&)>;

Result<SlotMap> ask_one(const RedisOptions& options, const RedisAddress& node, const Ask& ask) {
  SPEEDO_ASSIGN(const std::unique_ptr<RedisSession> session,
                RedisSession::connect(at_node(options, node), std::nullopt));
  return ask(*session, node);
}

// Several errors as one: the code is of the first that no retry mends, or else of the first.
void add(const Error& error, std::optional<Error>& all) {
  if (!all) {
    all = error;
    return;
  }
  if (is_transient(all->code) && !is_transient(error.code)) all->code = error.code;
  all->message += "; " + error.message;
}

Result<SlotMap> ask_each(const RedisOptions& options, std::span<const RedisAddress> nodes,
                         const std::function<bool()>& stop, const Ask& ask) {
  const auto end = std::chrono::steady_clock::now() + kStoreRetryTime;
  std::optional<Error> failed;
  for (const RedisAddress& node : nodes) {
    if (failed && (stop() || std::chrono::steady_clock::now() >= end)) break;
    auto map = ask_one(options, node, ask);
    if (map) return map;
    add(map.error(), failed);
  }
  return failed.value_or(Error{ErrorCode::kInternal, "no node of the Redis Cluster is known"});
}

// Whether the node gives slots away or takes them over: "[SLOT->-NODE]", "[SLOT-<-NODE]".
bool has_open_slots(RedisSession& session) {
  const auto nodes = session.command({"CLUSTER", "NODES"});
  if (!nodes) return false;
  const std::string_view text = text_of(**nodes);
  return text.find("->-") != std::string_view::npos || text.find("-<-") != std::string_view::npos;
}

Result<bool> scan_each(const RedisOptions& options, const SlotMap& slots, std::string_view prefix,
                       std::vector<std::string>& keys) {
  Sessions sessions;
  for (const RedisAddress& node : slots.primaries()) {
    SPEEDO_ASSIGN(sessions.emplace_back(),
                  RedisSession::connect(at_node(options, node), std::nullopt));
    SPEEDO_ASSIGN(const std::vector<std::string> found, scan_keys(*sessions.back(), prefix));
    keys.insert(keys.end(), found.begin(), found.end());
  }
  bool moves = false;
  for (const auto& session : sessions) moves = has_open_slots(*session) || moves;
  return moves;
}

bool never() { return false; }

}  // namespace

std::vector<RedisAddress> addresses_of(const std::vector<RedisOptions>& nodes) {
  std::vector<RedisAddress> all;
  for (const RedisOptions& each : nodes) all.push_back(each.address);
  return all;
}

RedisOptions at_node(RedisOptions options, const RedisAddress& address) {
  options.address = address;
  return options;
}

Result<SlotMap> learn_slots(const RedisOptions& options, std::span<const RedisAddress> nodes,
                            const std::function<bool()>& stop) {
  return ask_each(options, nodes, stop, ask_slots);
}

Result<SlotMap> learn_whole(const RedisOptions& options, std::span<const RedisAddress> nodes) {
  const Ask ask = [](RedisSession& session, const RedisAddress& node) -> Result<SlotMap> {
    SPEEDO_ASSIGN(SlotMap map, ask_slots(session, node));
    if (const std::string lacks = map.lacks(); !lacks.empty()) {
      return Error{ErrorCode::kUnavailable,
                   "Redis at " + session.where() + ": no node of the cluster has the slots " +
                       lacks + ": give them to one (redis-cli --cluster fix " + session.where() +
                       ")"};
    }
    SPEEDO_TRY(check_cluster_state(session));
    return map;
  };
  return ask_each(options, nodes, never, ask);
}

// A key that moves from a node that is still to be asked to one that was asked is missed: then a
// second round has it.
Result<std::vector<std::string>> scan_cluster(const RedisOptions& options,
                                              std::span<const RedisAddress> nodes,
                                              std::string_view prefix) {
  std::vector<std::string> keys;
  SPEEDO_ASSIGN(const SlotMap before, learn_slots(options, nodes, never));
  SPEEDO_ASSIGN(const bool moves, scan_each(options, before, prefix, keys));
  SPEEDO_ASSIGN(const SlotMap after, learn_slots(options, nodes, never));
  if (moves || !(after == before)) SPEEDO_TRY(scan_each(options, after, prefix, keys));
  return keys;
}

}  // namespace speedo
