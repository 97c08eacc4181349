#include "store/redis/redis_session.hpp"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <random>

#include <speedo/base/digest.hpp>

#include "store/redis/redis_auth.hpp"
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

std::string draw_name() {
  std::random_device device;
  return "speedo-" + std::to_string(device()) + "-" + std::to_string(device());
}

redisContext* dial(const RedisAddress& at, std::chrono::milliseconds patience) {
  const timeval timeout = to_timeval(patience);
  return at.unix_path.empty() ? redisConnectWithTimeout(at.host.c_str(), at.port, timeout)
                              : redisConnectUnixWithTimeout(at.unix_path.c_str(), timeout);
}

bool has_timed_out(const redisContext& context) {
  return context.err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT);
}

// What a server does not know or does not allow is done without.
Result<void> unless_transient(const Error& error) {
  if (is_transient(error.code)) return error;
  return {};
}

}  // namespace

void RedisSession::FreeReply::operator()(redisReply* reply) const { freeReplyObject(reply); }

RedisSession::RedisSession(redisContext* context, const RedisOptions& options)
    : context_(context), options_(options), where_(to_string(options.address)) {}

RedisSession::~RedisSession() {
  if (context_ != nullptr) redisFree(context_);
}

int RedisSession::socket() const { return context_->fd; }

Result<std::unique_ptr<RedisSession>> RedisSession::connect(
    const RedisOptions& options, const std::optional<RedisClient>& stale) {
  const SigpipeBlocked blocked;
  redisContext* context = dial(options.address, options.connect_timeout);
  std::unique_ptr<RedisSession> session(new RedisSession(context, options));
  SPEEDO_TRY(session->open(stale));
  return session;
}

Result<void> RedisSession::open(const std::optional<RedisClient>& stale) {
  if (context_ == nullptr || context_->err != 0) return connection_error();
  redisSetTimeout(context_, to_timeval(options_.connect_timeout));
  const RedisAddress& at = options_.address;
  if (at.unix_path.empty()) redisEnableKeepAlive(context_);
  SPEEDO_TRY(authenticate(context_->fd, options_.credentials, where_));
  if (at.db != 0) SPEEDO_TRY(command({"SELECT", std::to_string(at.db)}));
  SPEEDO_TRY(identify_server());
  SPEEDO_TRY(identify_client());
  if (stale) SPEEDO_TRY(close_on_server(*stale));
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
  return {};
}

// Servers that know no names, and users who may not give one, stay unnamed: then nobody can tell
// whether an id is ours.
Result<void> RedisSession::identify_client() {
  RedisClient client{0, draw_name()};
  const auto named = command({"CLIENT", "SETNAME", client.name});
  if (!named) return unless_transient(named.error());
  const auto id = command({"CLIENT", "ID"});
  if (!id) return unless_transient(id.error());
  client.id = (*id)->integer;
  client_ = std::move(client);
  return {};
}

Result<void> RedisSession::close_on_server(const RedisClient& stale) {
  const std::string id = std::to_string(stale.id);
  const auto listed = command({"CLIENT", "LIST", "ID", id});
  if (!listed) return unless_transient(listed.error());
  if ((*listed)->str == nullptr) return {};
  const std::string_view line((*listed)->str, (*listed)->len);
  if (line.find(" name=" + stale.name + " ") == std::string_view::npos) return {};
  const auto killed = command({"CLIENT", "KILL", "ID", id});
  return killed ? Result<void>() : unless_transient(killed.error());
}

Error RedisSession::connection_error() const {
  const std::string start = "Redis at " + where_ + ": ";
  if (context_ == nullptr) return Error{ErrorCode::kFull, start + "no memory to connect"};
  if (has_timed_out(*context_)) {
    return Error{ErrorCode::kTimeout, start +
                                          "no answer in time: is the server overloaded, "
                                          "stopped or behind a firewall?"};
  }
  std::string reason = context_->errstr;
  for (char& c : reason) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  // hiredis has no error of its own for a name that cannot be resolved.
  const char* remedy = context_->err == REDIS_ERR_OTHER
                           ? ": is the host's name right? give one that this machine knows"
                           : ": start redis-server there or give another address";
  return Error{ErrorCode::kUnavailable, start + reason + remedy};
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

bool is_somebody_at(const RedisAddress& address) {
  redisContext* context = dial(address, kStoreConnectTimeout);
  const bool found = context != nullptr && (context->err == 0 || has_timed_out(*context));
  if (context != nullptr) redisFree(context);
  return found;
}

}  // namespace speedo
