#include "store/redis/redis_error.hpp"

#include <array>

namespace speedo {
namespace {

struct KnownReply {
  std::string_view begins;
  ErrorCode code;
  std::string_view remedy;
};

constexpr std::string_view kPassword =
    "give the right password with --redis-password-file FILE or in SPEEDO_REDIS_PASSWORD, and with "
    "redis://USER@HOST its user, if it is not the default one's";

constexpr std::array kKnownReplies = {
    KnownReply{"NOAUTH", ErrorCode::kRefused, kPassword},
    KnownReply{"WRONGPASS", ErrorCode::kRefused, kPassword},
    KnownReply{"ERR invalid password", ErrorCode::kRefused, kPassword},
    KnownReply{"ERR AUTH", ErrorCode::kRefused, "the server has no password: give none"},
    KnownReply{"ERR Client sent AUTH", ErrorCode::kRefused,
               "the server has no password: give none"},
    KnownReply{"ERR wrong number of arguments for 'auth'", ErrorCode::kRefused,
               "this server knows no users: give a password only"},
    KnownReply{"NOPERM", ErrorCode::kRefused,
               "allow this user the keys ~speedo:* and the commands +@read +@write +@connection "
               "+eval +info, in a Redis Cluster +cluster too (ACL SETUSER)"},
    KnownReply{"DENIED", ErrorCode::kRefused,
               "set a password (requirepass) or bind the server to a trusted network"},
    KnownReply{"OOM", ErrorCode::kFull,
               "raise maxmemory (CONFIG SET maxmemory) or remove other keys"},
    KnownReply{"MISCONF", ErrorCode::kCannotWrite,
               "the server cannot save to its disk: make room there, or CONFIG SET "
               "stop-writes-on-bgsave-error no"},
    KnownReply{"LOADING", ErrorCode::kUnavailable, "wait until it has loaded its data"},
    KnownReply{"MASTERDOWN", ErrorCode::kUnavailable, "wait for the failover"},
    KnownReply{"TRYAGAIN", ErrorCode::kUnavailable, "wait until the cluster has moved the slot"},
    KnownReply{"CLUSTERDOWN", ErrorCode::kUnavailable, "wait for the cluster, or repair it"},
    KnownReply{"BUSY", ErrorCode::kUnavailable, "wait for its script, or SCRIPT KILL"},
    KnownReply{"READONLY", ErrorCode::kUnavailable,
               "this is a replica: give the address of the primary"},
    KnownReply{"NOREPLICAS", ErrorCode::kUnavailable, "too few replicas: start them"},
    KnownReply{"ERR max number of clients", ErrorCode::kUnavailable,
               "raise maxclients or close other connections"},
    KnownReply{"MOVED", ErrorCode::kUnsupported,
               "this is one node of a Redis Cluster: give redis-cluster://HOST:PORT"},
    KnownReply{"ASK", ErrorCode::kUnavailable, "wait until the cluster has moved the slot"},
    KnownReply{"ERR This instance has cluster support disabled", ErrorCode::kConfig,
               "this is no node of a Redis Cluster: give redis://HOST:PORT, or nodes of one"},
    KnownReply{"WRONGTYPE", ErrorCode::kCorrupt,
               "another program uses a key of this job: choose another job name"},
    KnownReply{"ERR DB index", ErrorCode::kConfig, "give a database that the server has"},
};

// Before Redis 7 what stopped a script is within the script's own error:
// "ERR Error running script (call to f_...): @user_script:1: -OOM command not allowed ...".
std::string_view cause_of(std::string_view reply) {
  constexpr std::string_view kCause = ": -";
  if (!reply.starts_with("ERR Error running script")) return reply;
  const std::size_t at = reply.find(kCause);
  return at == std::string_view::npos ? reply : reply.substr(at + kCause.size());
}

}  // namespace

Error redis_error(std::string_view reply, const std::string& where) {
  const std::string text = "Redis at " + where + " answered '" + std::string(reply) + "'";
  const std::string_view cause = cause_of(reply);
  for (const KnownReply& known : kKnownReplies) {
    if (cause.starts_with(known.begins)) {
      return Error{known.code, text + ": " + std::string(known.remedy)};
    }
  }
  return Error{ErrorCode::kInternal, text};
}

}  // namespace speedo
