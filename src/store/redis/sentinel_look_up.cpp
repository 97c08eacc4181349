#include "store/redis/sentinel_look_up.hpp"

#include <hiredis/hiredis.h>

#include <string>
#include <utility>

#include "base/parse_number.hpp"
#include "store/redis/node_checks.hpp"

namespace speedo {
namespace {

constexpr std::string_view kPrimaryRole = "master";

// Of an array of names and values.
std::string_view value_of(const redisReply& reply, std::string_view name) {
  for (std::size_t i = 0; i + 1 < reply.elements; i += 2) {
    if (text_of(*reply.element[i]) == name) return text_of(*reply.element[i + 1]);
  }
  return {};
}

RedisOptions options_of(const RedisOptions& options, const RedisSentinel& sentinel) {
  RedisOptions asked = options;
  asked.address = RedisAddress();
  asked.address.host = sentinel.host;
  asked.address.port = sentinel.port;
  asked.address.is_tls = options.address.is_tls;
  return asked;
}

RedisAddress primary_at(const std::string& host, int port, const RedisAddress& watched) {
  RedisAddress address;
  address.host = host;
  address.port = port;
  address.db = watched.db;
  address.is_tls = watched.is_tls;
  address.primary = watched.primary;
  return address;
}

// One that missed the latest failover names the server that was replaced.
Result<void> check_epoch(RedisSession& sentinel, const std::string& primary,
                         const RedisSession::Known& known) {
  SPEEDO_ASSIGN(const PrimaryFacts facts, facts_of_primary(sentinel, primary));
  if (facts.epoch >= known.epoch) return {};
  return Error{ErrorCode::kUnavailable, "the Sentinel at " + sentinel.where() +
                                            " has not heard of the latest failover of '" + primary +
                                            "': wait until it has"};
}

Result<RedisAddress> ask_sentinel(const RedisOptions& options, const RedisSentinel& sentinel,
                                  const RedisSession::Names& names) {
  const std::string& primary = options.address.primary;
  SPEEDO_ASSIGN(const std::unique_ptr<RedisSession> session,
                open_sentinel(options, sentinel, names));
  SPEEDO_ASSIGN(std::optional<RedisAddress> named, primary_named_by(*session, primary));
  if (!named) {
    return Error{ErrorCode::kConfig, "the Sentinel at " + session->where() +
                                         " watches no primary named '" + primary +
                                         "': see redis-cli -p PORT SENTINEL MASTERS"};
  }
  if (names.known) SPEEDO_TRY(check_epoch(*session, primary, *names.known));
  return primary_at(named->host, named->port, options.address);
}

// Sentinels may be behind, and a server may not know yet what it is to be. Who may not ask finds
// out when it writes.
Result<void> check_role(RedisSession& session) {
  const auto role = session.command({"ROLE"});
  if (!role) {
    if (is_transient(role.error().code)) return role.error();
    return {};
  }
  const redisReply& reply = **role;
  const bool is_primary = reply.type != REDIS_REPLY_ARRAY || reply.elements == 0 ||
                          text_of(*reply.element[0]) == kPrimaryRole;
  if (is_primary) return {};
  return Error{ErrorCode::kUnavailable,
               "Redis at " + session.where() + " is a replica: wait for the failover"};
}

// Whoever opens a store asks for this himself. A job under way waits: somebody may yet mend it, and
// a server that throws weights away would lose them.
Result<void> check_successor(RedisSession& session) {
  const auto fit = check_fitness(session);
  if (fit || is_transient(fit.error().code)) return fit;
  return Error{ErrorCode::kUnavailable, fit.error().message};
}

Result<std::unique_ptr<RedisSession>> connect_to(const RedisAddress& primary,
                                                 const RedisOptions& options,
                                                 const std::optional<RedisClient>& stale,
                                                 const RedisSession::Names& names) {
  RedisOptions found = options;
  found.address = primary;
  SPEEDO_ASSIGN(std::unique_ptr<RedisSession> session,
                RedisSession::connect(found, stale, names));
  SPEEDO_TRY(check_role(*session));
  if (names.known) SPEEDO_TRY(check_successor(*session));
  return session;
}

// Why one of the Sentinels led to no primary.
struct SentinelFailure {
  Error error;
  bool has_answered = false;
};

// Of the error of a session with it: such a session takes it for any server.
Error at_sentinel(Error error) {
  constexpr std::string_view kAnyServer = "Redis at ";
  if (!error.message.starts_with(kAnyServer)) return error;
  error.message.replace(0, kAnyServer.size(), "Sentinel at ");
  return error;
}

// One that answers says more than one that is away, and what a retry may mend more than a Sentinel
// that knows nothing.
bool says_more(const SentinelFailure& failure, const std::optional<SentinelFailure>& before) {
  if (!before || before->has_answered != failure.has_answered) {
    return !before || failure.has_answered;
  }
  return !is_transient(before->error.code);
}

}  // namespace

Result<std::optional<RedisAddress>> primary_named_by(RedisSession& sentinel,
                                                     const std::string& primary) {
  SPEEDO_ASSIGN(const RedisSession::Reply reply,
                sentinel.command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", primary}));
  const bool is_known = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
  const auto port = is_known ? parse_number<int>(text_of(*reply->element[1])) : std::nullopt;
  if (!port) return std::optional<RedisAddress>();
  RedisAddress address;
  address.host = text_of(*reply->element[0]);
  address.port = *port;
  return std::optional(std::move(address));
}

Result<PrimaryFacts> facts_of_primary(RedisSession& sentinel, const std::string& primary) {
  SPEEDO_ASSIGN(const RedisSession::Reply reply, sentinel.command({"SENTINEL", "MASTER", primary}));
  return PrimaryFacts{
      .epoch = parse_number<std::uint64_t>(value_of(*reply, "config-epoch")).value_or(0),
      .failover_state = std::string(value_of(*reply, "failover-state"))};
}

Result<std::unique_ptr<RedisSession>> open_sentinel(const RedisOptions& options,
                                                    const RedisSentinel& sentinel,
                                                    const RedisSession::Names& names) {
  const RedisOptions asked = options_of(options, sentinel);
  RedisOptions stranger = asked;
  stranger.credentials = {};
  auto session = RedisSession::connect(stranger, std::nullopt, names);
  const bool is_refused = !session && session.error().code == ErrorCode::kRefused;
  if (!is_refused || asked.credentials.password.empty()) return session;
  return RedisSession::connect(asked, std::nullopt, names);
}

Result<std::unique_ptr<RedisSession>> connect_to_primary(const RedisOptions& options,
                                                         const std::optional<RedisClient>& stale,
                                                         const RedisSession::Names& names) {
  std::optional<SentinelFailure> failed;
  bool is_named = false;
  for (const RedisSentinel& sentinel : options.address.sentinels) {
    const auto primary = ask_sentinel(options, sentinel, names);
    SentinelFailure failure;
    if (primary) {
      is_named = true;
      auto session = connect_to(*primary, options, stale, names);
      if (session) return session;
      failure = {session.error(), true};
      failure.error.message = "the primary that the Sentinel at " +
                              to_string(options_of(options, sentinel).address) +
                              " names: " + failure.error.message;
    } else {
      failure = {at_sentinel(primary.error()), !is_transient(primary.error().code)};
    }
    if (says_more(failure, failed)) failed = std::move(failure);
    if (names.stop()) break;
  }
  if (names.known && !is_named && !names.stop()) {
    const RedisAddress known = primary_at(names.known->host, names.known->port, options.address);
    auto session = connect_to(known, options, stale, names);
    if (session) return session;
  }
  if (failed) return failed->error;
  return Error{ErrorCode::kInternal, "no Sentinel is named"};
}

}  // namespace speedo
