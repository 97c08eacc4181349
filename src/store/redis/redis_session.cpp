#include "store/redis/redis_session.hpp"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/digest.hpp>

#include "base/random_bits.hpp"
#include "store/redis/info_value.hpp"
#include "store/redis/node_checks.hpp"
#include "store/redis/redis_auth.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/sentinel_look_up.hpp"
#include "store/redis/server_socket.hpp"
#include "store/redis/tls_wire.hpp"

namespace speedo {
namespace {

constexpr std::size_t kReplyPieceBytes = 4096;

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

// What can be reached from an address of one's choice: its own kind.
Result<void> leave_reachable(std::vector<std::string>& hosts, const RedisOptions& options) {
  if (options.source.empty()) return {};
  const auto is_of_six = [](const std::string& address) {
    return address.find(':') != std::string::npos;
  };
  std::erase_if(hosts, [&](const std::string& each) {
    return is_of_six(each) != is_of_six(options.source);
  });
  if (!hosts.empty()) return {};
  return at_server({ErrorCode::kConfig, "connecting from " + options.source +
                                            ": the server has no address of that kind: give "
                                            "another one of it, or another --iface"},
                   options.address);
}

// With the first of the host's addresses that accepts; with the error of the last, if none does.
// One that is silent leaves their share of the time to those behind it.
Result<int> connect_to_host(const RedisOptions& options, const RedisSession::Names& names) {
  const Instant end = steady_clock().now() + options.connect_timeout;
  const auto stop = [&] { return names.stop() || steady_clock().now() >= end; };
  SPEEDO_ASSIGN(std::vector<std::string> hosts, hosts_of(options.address, names.look_up, stop));
  if (!hosts.empty()) SPEEDO_TRY(leave_reachable(hosts, options));
  Result<int> socket = at_server({ErrorCode::kUnavailable, "no address of this name can be used"},
                                 options.address);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto share = (end - steady_clock().now()) / static_cast<int>(hosts.size() - i);
    socket = connect_tcp(options.source, hosts[i], options.address.port,
                         std::max(std::chrono::ceil<std::chrono::milliseconds>(share),
                                  std::chrono::milliseconds{1}));
    if (socket) break;
    socket = at_server(socket.error(), options.address);
    if (stop()) break;
  }
  return socket;
}

Result<int> dial(const RedisOptions& options, const RedisSession::Names& names) {
  const std::string& path = options.address.unix_path;
  if (path.empty()) return connect_to_host(options, names);
  auto socket = connect_unix(path, options.connect_timeout);
  if (!socket) return at_server(socket.error(), options.address);
  return socket;
}

// Of an attempt to agree on TLS.
Error at_tls_server(const Error& error, const RedisAddress& at) {
  if (error.code == ErrorCode::kTimeout) {
    return at_server({error.code, "no answer in time: is the server overloaded or stopped, or is "
                                  "this not its port for TLS (tls-port)?"},
                     at);
  }
  if (error.code != ErrorCode::kUnavailable) return at_server(error, at);
  return at_server({error.code, error.message +
                                    ": is this the server's port for TLS (tls-port), and does it "
                                    "ask for a certificate (--redis-tls-cert)?"},
                   at);
}

Result<std::unique_ptr<RedisWire>> open_wire(const RedisOptions& options,
                                             const RedisSession::Names& names) {
  SPEEDO_ASSIGN(const int socket, dial(options, names));
  if (!options.address.is_tls) return open_clear_wire(socket);
  auto wire = open_tls_wire(socket, options.tls, options.address.host,
                            {options.connect_timeout, names.stop});
  if (!wire) return at_tls_server(wire.error(), options.address);
  return wire;
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
void RedisSession::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

RedisSession::RedisSession(std::unique_ptr<RedisWire> wire, const RedisOptions& options)
    : wire_(std::move(wire)),
      reader_(redisReaderCreate()),
      options_(options),
      where_(to_string(options.address)),
      time_(options.connect_timeout) {
  SPEEDO_ASSERT(reader_ != nullptr);
}

bool RedisSession::is_local() const {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (::getpeername(wire_->socket(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  if (peer.ss_family == AF_UNIX) return true;
  constexpr std::uint32_t kLoopbackNetwork = 127;
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return ntohl(v4.sin_addr.s_addr) >> 24U == kLoopbackNetwork;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

Result<std::unique_ptr<RedisSession>> RedisSession::connect(const RedisOptions& options,
                                                            const std::optional<RedisClient>& stale,
                                                            const Names& names) {
  if (!options.address.sentinels.empty()) return connect_to_primary(options, stale, names);
  SPEEDO_ASSIGN(std::unique_ptr<RedisWire> wire, open_wire(options, names));
  std::unique_ptr<RedisSession> session(new RedisSession(std::move(wire), options));
  session->stop_ = names.stop;
  SPEEDO_TRY(session->open(stale));
  session->stop_ = [] { return false; };
  return session;
}

// Passwords are changed in a file and on the server, one after the other: in between it is the one
// of the start that may be right.
Result<void> RedisSession::log_in() {
  const RedisCredentials& given = options_.credentials;
  const auto renewed = given.renew ? given.renew() : Result<Secret>(given.password);
  const bool is_new = renewed && renewed->reveal() != given.password.reveal();
  if (is_new) {
    const auto done = authenticate(*wire_, {given.user, *renewed}, where_, {time_, stop_});
    if (done || done.error().code != ErrorCode::kRefused) return done;
  }
  return authenticate(*wire_, given, where_, {time_, stop_});
}

Result<void> RedisSession::open(const std::optional<RedisClient>& stale) {
  const int db = options_.address.db;
  SPEEDO_TRY(log_in());
  if (db != 0) SPEEDO_TRY(command({"SELECT", std::to_string(db)}));
  SPEEDO_TRY(identify_server());
  SPEEDO_TRY(identify_client());
  if (stale) SPEEDO_TRY(close_on_server(*stale));
  time_ = options_.command_timeout;
  return {};
}

// Users without the right to ask get 0: then only this connection's own incarnation tells servers
// apart.
Result<void> RedisSession::identify_server() {
  // One that cannot save refuses a PING as it does writes, and is still read from.
  const auto pong = command({"PING"});
  if (!pong && pong.error().code != ErrorCode::kCannotWrite) return pong.error();
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
  const bool may_be_replaced = options_.address.is_cluster || !options_.address.primary.empty();
  if (may_be_replaced) SPEEDO_TRY(identify_data());
  return options_.address.is_cluster ? check_node() : Result<void>();
}

// A primary that was replaced and comes back as a
// replica takes over the other's data, so when it becomes the primary again it is another
// incarnation, though it has not restarted: its replication id tells.
Result<void> RedisSession::identify_data() {
  const auto info = command({"INFO", "replication"});
  if (!info) {
    SPEEDO_TRY(unless_transient(info.error()));
  } else if (server_ != 0 && (*info)->str != nullptr) {
    const std::string id = info_value({(*info)->str, (*info)->len}, "master_replid");
    server_ = digest_of(std::to_string(server_) + id).low;
  }
  return {};
}

// Nobody chose this server: the cluster names it.
Result<void> RedisSession::check_node() {
  if (!mode_.empty() && mode_ != kClusterMode) {
    return Error{ErrorCode::kConfig, "Redis at " + where_ +
                                         " is no node of a Redis Cluster (cluster-enabled no): "
                                         "give redis://" + where_ + ", or nodes of the cluster"};
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

Result<RedisSession::Reply> RedisSession::command(const std::vector<std::string>& arguments) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& argument : arguments) {
    texts.push_back(argument.data());
    lengths.push_back(argument.size());
  }
  char* formatted = nullptr;
  const int size = redisFormatCommandArgv(&formatted, static_cast<int>(texts.size()), texts.data(),
                                          lengths.data());
  SPEEDO_ASSERT(size > 0);
  const std::unique_ptr<char, void (*)(char*)> owned(formatted, redisFreeCommand);
  iovec vector{formatted, static_cast<std::size_t>(size)};
  const RedisPatience patience(time_, stop_);
  const auto sent = send_all(*wire_, std::span(&vector, 1), patience);
  auto reply = sent ? receive_reply(patience) : Result<Reply>(sent.error());
  if (!reply) return at_server(reply.error(), options_.address);
  if ((*reply)->type == REDIS_REPLY_ERROR) {
    return redis_error({(*reply)->str, (*reply)->len}, where_,
                       {options_.credentials.user, arguments.front(), {}});
  }
  return reply;
}

Result<RedisSession::Reply> RedisSession::receive_reply(const RedisPatience& patience) {
  std::array<char, kReplyPieceBytes> piece{};
  while (true) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
      return Error{ErrorCode::kUnavailable, "the answer is not Redis' protocol"};
    }
    if (reply != nullptr) return Reply(static_cast<redisReply*>(reply));
    SPEEDO_ASSIGN(const std::size_t size, await_bytes(*wire_, piece, patience));
    redisReaderFeed(reader_.get(), piece.data(), size);
  }
}

bool is_somebody_at(const RedisAddress& address) {
  RedisOptions options;
  options.address = address;
  const auto socket = dial(options, {});
  if (!socket) return socket.error().code == ErrorCode::kTimeout;
  const Descriptor closed(*socket);
  return true;
}

}  // namespace speedo
