#include "store/redis/redis_error.hpp"

#include <algorithm>
#include <array>
#include <cctype>

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

constexpr std::string_view kNoSentinel =
    "this is no Sentinel: give redis://HOST:PORT, or the Sentinels' port, mostly 26379";
constexpr std::string_view kNoScripts =
    "either this is a Sentinel: give redis-sentinel://HOST:PORT/NAME, or a server where scripts "
    "are disabled, and a master's writes need EVAL: allow it (rename-command), or take another "
    "server";
constexpr std::string_view kNoCommand =
    "a master's scripts use GET, SET, SETEX, UNLINK, DEL and PTTL, and this server lacks one: "
    "allow it (rename-command), or take another server";

constexpr std::string_view kForeignKey =
    "another program has written a key of this job: remove the key (speedo jobs --remove removes "
    "all of the job's), or take another job name";

constexpr std::array kKnownReplies = {
    KnownReply{"NOAUTH", ErrorCode::kRefused, kPassword},
    KnownReply{"WRONGPASS", ErrorCode::kRefused, kPassword},
    KnownReply{"ERR invalid password", ErrorCode::kRefused, kPassword},
    KnownReply{"ERR AUTH", ErrorCode::kRefused, "the server has no password: give none"},
    KnownReply{"ERR Client sent AUTH", ErrorCode::kRefused,
               "the server has no password: give none"},
    KnownReply{"ERR wrong number of arguments for 'auth'", ErrorCode::kRefused,
               "this server knows no users: give a password only"},
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
    KnownReply{"ERR unknown command 'SENTINEL'", ErrorCode::kConfig, kNoSentinel},
    KnownReply{"ERR unknown command `SENTINEL`", ErrorCode::kConfig, kNoSentinel},
    KnownReply{"ERR unknown command 'EVAL'", ErrorCode::kConfig, kNoScripts},
    KnownReply{"ERR unknown command `EVAL`", ErrorCode::kConfig, kNoScripts},
    KnownReply{"ERR unknown command 'UNLINK'", ErrorCode::kConfig, kNoCommand},
    KnownReply{"ERR unknown command `UNLINK`", ErrorCode::kConfig, kNoCommand},
    KnownReply{"WRONGTYPE", ErrorCode::kCorrupt, kForeignKey},
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

// Of the server's access control lists. What a script may not do is no NOPERM before Redis 7.2.
bool is_permission(std::string_view cause) {
  return cause.starts_with("NOPERM") || cause.find("NOPERM ACL") != std::string_view::npos ||
         cause.starts_with("ERR The user executing the script can't");
}

// The words before it differ from version to version.
bool is_missing_in_script(std::string_view cause) {
  return cause.find("Unknown Redis command called from") != std::string_view::npos;
}

// "config|get" of "... to run the 'config|get' command"; empty: the server names none.
std::string_view quoted_command(std::string_view cause) {
  constexpr std::string_view kBefore = "to run the '";
  const std::size_t at = cause.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = cause.substr(at + kBefore.size());
  return rest.substr(0, rest.find('\''));
}

// By the lists of conf/redis-acl.conf: a worker writes what it hands in alone.
std::string_view missing_keys(std::string_view command, std::string_view key) {
  const auto begins = [&](std::string_view word) {
    return std::ranges::equal(command.substr(0, word.size()), word,
                              [](unsigned char a, char b) { return std::toupper(a) == b; });
  };
  if (begins("GET")) return "%R~speedo:*";
  return key.find(":worker/") != std::string_view::npos ? "~speedo:{*}:worker/*" : "~speedo:*";
}

std::string permission_remedy(std::string_view cause, const RedisAsking& asking) {
  const std::string user(asking.user.empty() ? "default" : asking.user);
  const bool is_key = cause.find("one of the keys") != std::string_view::npos;
  const bool in_script = cause.find("script") != std::string_view::npos;
  const std::string_view named = quoted_command(cause);
  std::string what(named.empty() ? asking.command : named);
  std::string missing;
  if (is_key) {
    missing = missing_keys(what, asking.key);
    if (!asking.key.empty()) what += " on the key '" + std::string(asking.key) + "'";
  } else if (in_script) {
    missing = "+get +set +setex +unlink +del +pttl";
    what = "a command of a master's script (" + what + ")";
  } else {
    missing = "+";
    for (const unsigned char c : what) missing += static_cast<char>(std::tolower(c));
  }
  return "its access control list forbids user '" + user + "' " + what + ": ACL SETUSER " + user +
         " " + missing +
         " (conf/redis-acl.conf says what master and worker need), or name another user with "
         "redis://USER@HOST";
}

}  // namespace

Error redis_error(std::string_view reply, const std::string& where, const RedisAsking& asking) {
  const std::string text = "Redis at " + where + " answered '" + std::string(reply) + "'";
  const std::string_view cause = cause_of(reply);
  if (is_permission(cause)) {
    return Error{ErrorCode::kRefused, text + ": " + permission_remedy(cause, asking)};
  }
  if (is_missing_in_script(cause)) {
    return Error{ErrorCode::kConfig, text + ": " + std::string(kNoCommand)};
  }
  for (const KnownReply& known : kKnownReplies) {
    if (cause.starts_with(known.begins)) {
      return Error{known.code, text + ": " + std::string(known.remedy)};
    }
  }
  return Error{ErrorCode::kInternal, text};
}

}  // namespace speedo
