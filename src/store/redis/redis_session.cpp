#include "store/redis/redis_session.hpp"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <speedo/base/clock.hpp>
#include <speedo/base/digest.hpp>

#include "base/random_bits.hpp"
#include "store/redis/bound_socket.hpp"
#include "store/redis/node_checks.hpp"
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

std::string draw_name() { return "speedo-" + std::to_string(random_bits()); }

Error at_server(const Error& error, const RedisAddress& at) {
  return Error{error.code, "Redis at " + to_string(at) + ": " + error.message};
}

// hiredis itself would wait for a name as long as the system does. It asks for IPv4 first, and so
// does this.
Result<std::vector<std::string>> hosts_of(const RedisAddress& at, const LookUp& look_up,
                                          const std::function<bool()>& stop) {
  const auto found = look_up_until(stop, look_up, at.host, at.port);
  if (!found) return at_server(found.error(), at);
  std::vector<std::string> hosts;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* each = found->get(); each != nullptr; each = each->ai_next) {
      if (each->ai_family == family) hosts.push_back(numeric_host(*each));
    }
  }
  return hosts;
}

// With the first of the host's addresses that accepts; with the error of the last, if none does.
Result<RedisSession::Context> connect_to_host(const RedisOptions& options,
                                              const RedisSession::Names& names) {
  const Instant end = steady_clock().now() + options.connect_timeout;
  const auto stop = [&] { return names.stop() || steady_clock().now() >= end; };
  SPEEDO_ASSIGN(const std::vector<std::string> hosts,
                hosts_of(options.address, names.look_up, stop));
  const timeval timeout = to_timeval(options.connect_timeout);
  RedisSession::Context context;
  Result<void> failed;
  for (const std::string& host : hosts) {
    context.reset();
    if (options.source.empty()) {
      context.reset(redisConnectWithTimeout(host.c_str(), options.address.port, timeout));
    } else {
      auto fd = connect_from(options.source, host, options.address.port, options.connect_timeout);
      if (fd) context.reset(redisConnectFd(*fd));
      failed = fd ? Result<void>() : Result<void>(at_server(fd.error(), options.address));
      if (!fd && !stop()) continue;
    }
    if (!context || context->err == 0 || stop()) break;
  }
  if (!context) SPEEDO_TRY(failed);
  return context;
}

Result<RedisSession::Context> dial(const RedisOptions& options, const RedisSession::Names& names) {
  const std::string& path = options.address.unix_path;
  if (path.empty()) return connect_to_host(options, names);
  return RedisSession::Context(
      redisConnectUnixWithTimeout(path.c_str(), to_timeval(options.connect_timeout)));
}

bool has_timed_out(const redisContext& context) {
  return context.err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT);
}

// Whether the answer to CLIENT LIST has a line of this client, by id and name.
bool is_listed(std::string_view lines, const RedisClient& client) {
  const std::string id = "id=" + std::to_string(client.id) + " ";
  const std::string name = " name=" + client.name + " ";
  for (std::size_t at = 0; at < lines.size();) {
    const std::string_view line = lines.substr(at, lines.find('\n', at) - at);
    if (line.starts_with(id) && line.find(name) != std::string_view::npos) return true;
    at += line.size() + 1;
  }
  return false;
}

// What a server does not know or does not allow is done without.
Result<void> unless_transient(const Error& error) {
  if (is_transient(error.code)) return error;
  return {};
}

}  // namespace

std::string_view text_of(const redisReply& reply) {
  const bool is_text = reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS;
  return is_text ? std::string_view(reply.str, reply.len) : std::string_view();
}

void RedisSession::Free::operator()(redisReply* reply) const { freeReplyObject(reply); }
void RedisSession::Free::operator()(redisContext* context) const { redisFree(context); }

RedisSession::RedisSession(Context context, const RedisOptions& options)
    : context_(std::move(context)), options_(options), where_(to_string(options.address)) {}

int RedisSession::socket() const { return context_->fd; }

Result<std::unique_ptr<RedisSession>> RedisSession::connect(const RedisOptions& options,
                                                            const std::optional<RedisClient>& stale,
                                                            const Names& names) {
  const SigpipeBlocked blocked;
  SPEEDO_ASSIGN(Context context, dial(options, names));
  std::unique_ptr<RedisSession> session(new RedisSession(std::move(context), options));
  SPEEDO_TRY(session->open(stale));
  return session;
}

Result<void> RedisSession::open(const std::optional<RedisClient>& stale) {
  if (!context_ || context_->err != 0) return connection_error();
  redisSetTimeout(context_.get(), to_timeval(options_.connect_timeout));
  const RedisAddress& at = options_.address;
  if (at.unix_path.empty()) redisEnableKeepAlive(context_.get());
  SPEEDO_TRY(authenticate(context_->fd, options_.credentials, where_));
  if (at.db != 0) SPEEDO_TRY(command({"SELECT", std::to_string(at.db)}));
  SPEEDO_TRY(identify_server());
  SPEEDO_TRY(identify_client());
  if (stale) SPEEDO_TRY(close_on_server(*stale));
  redisSetTimeout(context_.get(), to_timeval(options_.command_timeout));
  return {};
}

// Users without the right to ask get 0: then only this connection's own incarnation tells servers
// apart.
Result<void> RedisSession::identify_server() {
  SPEEDO_TRY(command({"PING"}));
  if (auto info = command({"INFO", "server"})) {
    if ((*info)->str != nullptr) {
      const std::string_view text = text_of(**info);
      server_ = digest_of(info_value(text, "run_id")).low;
      mode_ = info_value(text, "redis_mode");
      version_ = info_value(text, "redis_version");
    }
  } else if (is_transient(info.error().code)) {
    return info.error();
  }
  return options_.address.is_cluster ? check_node() : Result<void>();
}

// Nobody chose this server: the cluster names it. A primary that was replaced and comes back as a
// replica takes over the other's data, so when it becomes the primary again it is another
// incarnation, though it has not restarted: its replication id tells.
Result<void> RedisSession::check_node() {
  if (!mode_.empty() && mode_ != kClusterMode) {
    return Error{ErrorCode::kConfig, "Redis at " + where_ +
                                         " is no node of a Redis Cluster (cluster-enabled no): "
                                         "give redis://" + where_ + ", or nodes of the cluster"};
  }
  const auto info = command({"INFO", "replication"});
  if (!info) {
    SPEEDO_TRY(unless_transient(info.error()));
  } else if (server_ != 0 && (*info)->str != nullptr) {
    const std::string id = info_value({(*info)->str, (*info)->len}, "master_replid");
    server_ = digest_of(std::to_string(server_) + id).low;
  }
  return check_fitness(*this);
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
  auto listed = command({"CLIENT", "LIST", "ID", id});
  // Before Redis 6.2 all clients are listed or none.
  if (!listed && !is_transient(listed.error().code)) listed = command({"CLIENT", "LIST"});
  if (!listed) return unless_transient(listed.error());
  if ((*listed)->str == nullptr) return {};
  if (!is_listed({(*listed)->str, (*listed)->len}, stale)) return {};
  const auto killed = command({"CLIENT", "KILL", "ID", id});
  return killed ? Result<void>() : unless_transient(killed.error());
}

Error RedisSession::connection_error() const {
  const std::string start = "Redis at " + where_ + ": ";
  if (!context_) return Error{ErrorCode::kFull, start + "no memory to connect"};
  if (has_timed_out(*context_)) {
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
  Reply reply(static_cast<redisReply*>(redisCommandArgv(
      context_.get(), static_cast<int>(texts.size()), texts.data(), lengths.data())));
  if (!reply) return connection_error();
  if (reply->type == REDIS_REPLY_ERROR) {
    return redis_error(std::string_view(reply->str, reply->len), where_,
                       {options_.credentials.user, arguments.front(), {}});
  }
  return reply;
}

bool is_somebody_at(const RedisAddress& address) {
  RedisOptions options;
  options.address = address;
  const auto context = dial(options, {});
  if (!context || !*context) return false;
  return (*context)->err == 0 || has_timed_out(**context);
}

}  // namespace speedo
