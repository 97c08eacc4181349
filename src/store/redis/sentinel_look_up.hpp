#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "store/redis/redis_session.hpp"

namespace speedo {

// A session with one of the Sentinels. Most of them ask for no password, and refuse one then: it is
// given to those that do.
Result<std::unique_ptr<RedisSession>> open_sentinel(const RedisOptions& options,
                                                    const RedisSentinel& sentinel,
                                                    const RedisSession::Names& names);

// Where the server is that a Sentinel knows by the primary's name; nothing if it knows none. Host
// and port of the address are set. Errors: those of the session.
Result<std::optional<RedisAddress>> primary_named_by(RedisSession& sentinel,
                                                     const std::string& primary);

// What a Sentinel knows of that server besides.
struct PrimaryFacts {
  std::uint64_t epoch = 0;  // of its configuration: a failover makes it higher
  std::string failover_state;
};
Result<PrimaryFacts> facts_of_primary(RedisSession& sentinel, const std::string& primary);

// Connects to the primary that the Sentinels of options.address know by its name, as the first of
// them says that is right: a server that it names and that is no primary, or away, is no answer,
// nor is what a Sentinel says that knows an older epoch than names.known's. If none is right, the
// known one is, as long as it is a primary.
// A Sentinel that asks for a password is given Redis' own. Errors: as RedisSession::connect(), of
// one that answers if any does; kConfig if all that answer know no such name.
Result<std::unique_ptr<RedisSession>> connect_to_primary(const RedisOptions& options,
                                                         const std::optional<RedisClient>& stale,
                                                         const RedisSession::Names& names);

}  // namespace speedo
