#pragma once

#include <speedo/base/result.hpp>

#include "store/redis/redis_session.hpp"

namespace speedo {

// Primaries of the Redis Cluster that the server is a node of, 1 if it does not say; 0: of none.
// Errors: those of the connection.
Result<int> cluster_size(RedisSession& session);

// Each asks the server what it is and says what is wrong with that: kConfig. Servers that do not
// let us ask are trusted. Other errors: those of the connection.

// An older version than the tests run with; a policy by which weights that the server throws away
// would be lost without a word.
Result<void> check_fitness(RedisSession& session);
// Whoever reaches a server that asks for no password reads and changes everything: kRefused, unless
// only this machine reaches it, or options.may_be_open. `session`: with it, by these options.
Result<void> check_is_guarded(const RedisOptions& options, const RedisSession& session);
// The same as an answer, whatever the options allow.
Result<bool> lets_in_strangers(const RedisOptions& options, const RedisSession& session);
// A node of a Redis Cluster with other primaries has no place for all keys of a job. Its reply to
// most of them would be MOVED.
Result<void> check_is_alone(RedisSession& session);
// cluster_state, as the node sees it: kUnavailable while it is not "ok".
Result<void> check_cluster_state(RedisSession& session);

}  // namespace speedo
