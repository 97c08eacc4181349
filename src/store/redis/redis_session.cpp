#include "store/redis/redis_session.hpp"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include <speedo/base/digest.hpp>

#include "store/redis/redis_error.hpp"

namespace speedo {
namespace {

timeval to_timeval(std::chrono::milliseconds duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  const auto rest = std::chrono::duration_cast<std::chrono::microseconds>(duration - seconds);
  return timeval{static_cast<time_t>(seconds.count()), static_cast<suseconds_t>(rest.count())};
}

// hiredis writes without MSG_NOSIGNAL: a server that has gone would end the program.
class SigpipeBlocked {
 public:
  SigpipeBlocked() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~SigpipeBlocked() {
    const timespec no_wait{};
    while (sigtimedwait(&sigpipe_, nullptr, &no_wait) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlocked(const SigpipeBlocked&) = delete;
  SigpipeBlocked& operator=(const SigpipeBlocked&) = delete;

 private:
  sigset_t sigpipe_, before_;
};

std::string value_of(std::string_view info, std::string_view name) {
  const std::size_t at = info.find(name);
  if (at == std::string_view::npos) return "";
  const std::size_t first = at + name.size();
  return std::string(info.substr(first, info.find_first_of("\r\n", first) - first));
}

}  // namespace

void RedisSession::FreeReply::operator()(redisReply* reply) const { freeReplyObject(reply); }

RedisSession::RedisSession(redisContext* context, const RedisOptions& options)
    : context_(context), options_(options), where_(to_string(options)) {}

RedisSession::~RedisSession() {
  if (context_ != nullptr) redisFree(context_);
}

int RedisSession::socket() const { return context_->fd; }

Result<std::unique_ptr<RedisSession>> RedisSession::connect(const RedisOptions& options,
                                                            std::int64_t stale_client) {
  const SigpipeBlocked blocked;
  const timeval timeout = to_timeval(options.connect_timeout);
  redisContext* context = options.unix_path.empty()
                              ? redisConnectWithTimeout(options.host.c_str(), options.port, timeout)
                              : redisConnectUnixWithTimeout(options.unix_path.c_str(), timeout);
  std::unique_ptr<RedisSession> session(new RedisSession(context, options));
  SPEEDO_TRY(session->open(stale_client));
  return session;
}

Result<void> RedisSession::open(std::int64_t stale_client) {
  if (context_ == nullptr || context_->err != 0) return connection_error();
  redisSetTimeout(context_, to_timeval(options_.connect_timeout));
  if (options_.unix_path.empty()) redisEnableKeepAlive(context_);
  if (!options_.password.empty()) {
    std::vector<std::string> auth = {"AUTH", options_.password};
    if (!options_.user.empty()) auth.insert(auth.begin() + 1, options_.user);
    SPEEDO_TRY(command(auth));
  }
  if (options_.db != 0) SPEEDO_TRY(command({"SELECT", std::to_string(options_.db)}));
  SPEEDO_TRY(identify_server());
  if (stale_client != 0) {
    auto killed = command({"CLIENT", "KILL", "ID", std::to_string(stale_client)});
    if (!killed && is_transient(killed.error().code)) return killed.error();
  }
  redisSetTimeout(context_, to_timeval(options_.command_timeout));
  return {};
}

// Users without the right to ask get 0: then only this connection's own life tells servers apart.
Result<void> RedisSession::identify_server() {
  SPEEDO_TRY(command({"PING"}));
  if (auto info = command({"INFO", "server"})) {
    if ((*info)->str != nullptr) {
      server_ = digest_of(value_of({(*info)->str, (*info)->len}, "run_id:")).low;
    }
  } else if (is_transient(info.error().code)) {
    return info.error();
  }
  if (auto id = command({"CLIENT", "ID"})) {
    client_ = (*id)->integer;
  } else if (is_transient(id.error().code)) {
    return id.error();
  }
  return {};
}

Error RedisSession::connection_error() const {
  const std::string start = "Redis at " + where_ + ": ";
  if (context_ == nullptr) return Error{ErrorCode::kFull, start + "no memory to connect"};
  const bool timed_out = context_->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT);
  if (timed_out) {
    return Error{ErrorCode::kTimeout, start +
                                          "no answer in time: is the server overloaded, "
                                          "stopped or behind a firewall?"};
  }
  std::string reason = context_->errstr;
  for (char& c : reason) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return Error{ErrorCode::kUnavailable,
               start + reason + ": start redis-server there or give another address"};
}

Result<RedisSession::Reply> RedisSession::command(const std::vector<std::string>& arguments) {
  const SigpipeBlocked blocked;
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& argument : arguments) {
    texts.push_back(argument.data());
    lengths.push_back(argument.size());
  }
  errno = 0;
  Reply reply(static_cast<redisReply*>(
      redisCommandArgv(context_, static_cast<int>(texts.size()), texts.data(), lengths.data())));
  if (!reply) return connection_error();
  if (reply->type == REDIS_REPLY_ERROR) {
    return redis_error(std::string_view(reply->str, reply->len), where_);
  }
  return reply;
}

}  // namespace speedo
