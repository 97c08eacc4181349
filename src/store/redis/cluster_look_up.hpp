#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "store/redis/redis_session.hpp"
#include "store/redis/slot_map.hpp"

namespace speedo {

std::vector<RedisAddress> addresses_of(const std::vector<RedisOptions>& nodes);
// `options` for the node at `address`.
RedisOptions at_node(RedisOptions options, const RedisAddress& address);

// Which primary has which slot, by the first of `nodes` that says so; the others are asked if it
// does not. `options`: of each of them, but for the address. Stops early when `stop` says so, or
// after kStoreRetryTime. Errors: of the connections, one that no retry mends first.
Result<SlotMap> learn_slots(const RedisOptions& options, std::span<const RedisAddress> nodes,
                            const std::function<bool()>& stop);
// The same of a cluster that serves all slots, or kUnavailable. Blocking.
Result<SlotMap> learn_whole(const RedisOptions& options, std::span<const RedisAddress> nodes);

// The keys of all primaries that begin with `prefix`, each at least once, also those that are moved
// from one to another meanwhile.
Result<std::vector<std::string>> scan_cluster(const RedisOptions& options,
                                              std::span<const RedisAddress> nodes,
                                              std::string_view prefix);

}  // namespace speedo
