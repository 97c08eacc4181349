#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "base/name_lookup.hpp"
#include "store/redis/redis_wire.hpp"

struct redisReader;
struct redisReply;

namespace speedo {

// See RedisSession::mode().
inline constexpr std::string_view kClusterMode = "cluster";

// A reply's text; nothing of one that is no string or status.
std::string_view text_of(const redisReply& reply);

// A connection as its server knows it. Ids begin anew with each incarnation of a server; the name
// is drawn, and so tells whether an id is still this connection's.
struct RedisClient {
  std::int64_t id = 0;
  std::string name;
};

// One authenticated connection: connecting and small commands that are waited for. hiredis writes
// and reads the protocol.
// After any error of a command the session is out of step: destroy it.
// Thread safety: one thread at a time.
class RedisSession {
 public:
  struct Free {
    void operator()(redisReply* reply) const;
    void operator()(redisReader* reader) const;
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  // The latest primary that Sentinels named, and the epoch of their configuration then.
  struct Known {
    std::string host;
    int port = 0;
    std::uint64_t epoch = 0;
    bool is_there(const std::optional<Known>& before) const {
      return before && before->host == host && before->port == port;
    }
  };
  // How a host's name becomes an address, for connect_timeout at most.
  struct Names {
    LookUp look_up = ask_system;
    std::function<bool()> stop = [] { return false; };  // not to be waited for any longer
    std::optional<Known> known = std::nullopt;          // Sentinels that are behind it are passed
  };
  // Connects, sends AUTH and SELECT where asked for, and learns which server it is. `stale`: an
  // earlier connection of ours. If this server still has it, it is closed there first, so that what
  // it may have under way cannot take effect later. If the address is_cluster, the server must be a
  // node of a cluster that does not evict keys (kConfig); if it names Sentinels, their primary.
  static Result<std::unique_ptr<RedisSession>> connect(const RedisOptions& options,
                                                       const std::optional<RedisClient>& stale,
                                                       const Names& names);
  static Result<std::unique_ptr<RedisSession>> connect(const RedisOptions& options,
                                                       const std::optional<RedisClient>& stale) {
    return connect(options, stale, Names{});
  }

  // An error reply is an Error, see redis_error().
  Result<Reply> command(const std::vector<std::string>& arguments);

  RedisWire& wire() { return *wire_; }
  // Changes when the server restarts; a cluster's node also has another one after each time that it
  // became a primary. 0: it does not say.
  std::uint64_t server() const { return server_; }
  // "standalone", kClusterMode or "sentinel"; empty: it does not say.
  const std::string& mode() const { return mode_; }
  const std::string& version() const { return version_; }  // "7.0.15"; empty: it does not say
  const std::string& where() const { return where_; }
  const RedisAddress& address() const { return options_.address; }  // also if a Sentinel named it
  // Reached by way of this machine's loopback, or by a unix socket.
  bool is_local() const;
  // Ourselves there; none if the server does not say.
  const std::optional<RedisClient>& client() const { return client_; }

 private:
  RedisSession(std::unique_ptr<RedisWire> wire, const RedisOptions& options);
  Result<void> open(const std::optional<RedisClient>& stale);
  Result<void> log_in();
  Result<void> identify_server();
  Result<void> identify_data();
  Result<void> check_node();
  Result<void> identify_client();
  Result<void> close_on_server(const RedisClient& stale);
  Result<Reply> receive_reply(const RedisPatience& patience);

  const std::unique_ptr<RedisWire> wire_;
  const std::unique_ptr<redisReader, Free> reader_;
  const RedisOptions options_;
  const std::string where_;
  std::chrono::milliseconds time_;  // that the server has for each command
  std::function<bool()> stop_ = [] { return false; };
  std::uint64_t server_ = 0;
  std::string mode_, version_;
  std::optional<RedisClient> client_;
};

}  // namespace speedo
