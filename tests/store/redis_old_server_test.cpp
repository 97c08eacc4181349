// What differs with a Redis server of an earlier version.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>

#include "store/redis/redis_session.hpp"
#include "store/store_under_test.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {
namespace {

// Serves one connection as Redis 6.0 does, as far as opening one goes: CLIENT LIST knows no ID.
class OldServer {
 public:
  // `clients`: the answer to CLIENT LIST.
  explicit OldServer(std::string clients)
      : clients_(std::move(clients)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = options().address.unix_path;
    REQUIRE(path.size() < sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~OldServer() {
    ::shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  RedisOptions options() const { return quick_options("unix://" + (folder_ / "redis").string()); }

  // The request to kill a client, if one came. Once the connection is closed.
  std::string killed() {
    thread_.join();
    return killed_;
  }

 private:
  // Requests come one at a time, each waiting for its answer.
  void serve() {
    const int peer = ::accept(listener_, nullptr, nullptr);
    std::array<char, 1024> bytes{};
    ssize_t got = 0;
    while ((got = ::recv(peer, bytes.data(), bytes.size(), 0)) > 0) {
      const std::string reply = answer({bytes.data(), static_cast<std::size_t>(got)});
      ::send(peer, reply.data(), reply.size(), MSG_NOSIGNAL);
    }
    ::close(peer);
  }
  std::string answer(const std::string& request) {
    const auto has = [&](const char* words) { return request.find(words) != std::string::npos; };
    if (has("INFO")) return "-NOPERM\r\n";
    if (has("KILL")) {
      killed_ = request;
      return ":1\r\n";
    }
    if (has("LIST\r\n$2\r\nID")) return "-ERR syntax error\r\n";
    if (has("LIST")) return "$" + std::to_string(clients_.size()) + "\r\n" + clients_ + "\r\n";
    if (has("\r\nID")) return ":900\r\n";
    return "+OK\r\n";
  }

  const TempDir folder_;
  const std::string clients_;
  const int listener_;
  std::string killed_;
  std::thread thread_;
};

std::string killed_by_a_connection(const std::string& clients) {
  OldServer server(clients);
  require(RedisSession::connect(server.options(), RedisClient{7, "speedo-1-2"}));
  return server.killed();
}

}  // namespace

TEST_CASE("an old server's stale connection is closed, if it has the name", "[redis]") {
  const std::string others = "id=17 addr=a:1 fd=8 name=speedo-1-3 age=5\n";
  const std::string killed =
      killed_by_a_connection(others + "id=7 addr=a:2 fd=9 name=speedo-1-2 age=3\n");
  REQUIRE(killed.find("KILL\r\n$2\r\nID\r\n$1\r\n7\r\n") != std::string::npos);
}

TEST_CASE("an old server's other connections are left alone", "[redis]") {
  REQUIRE(killed_by_a_connection("id=7 addr=a:1 fd=8 name=speedo-1-3 age=5\n"
                                 "id=17 addr=a:2 fd=9 name=speedo-1-2 age=3\n")
              .empty());
  REQUIRE(killed_by_a_connection("").empty());
}

}  // namespace speedo::test
