// What happens when bytes change between a store and its server.

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "store/redis/redis_session.hpp"
#include "store/store_under_test.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {
namespace {

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  return address;
}

int unix_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

// Passes connections on to a server; words of them become others, each as often as it was asked.
class SpoilingRelay {
 public:
  explicit SpoilingRelay(const std::string& server) : server_(server), listener_(unix_socket()) {
    const sockaddr_un address = unix_address(path());
    REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(listener_, 8) == 0);
    threads_.emplace_back([this] { accept_all(); });
  }
  ~SpoilingRelay() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      for (const int each : peers_) ::shutdown(each, SHUT_RDWR);
    }
    ::shutdown(listener_, SHUT_RDWR);
    threads_.front().join();  // which starts the others
    for (auto each = std::next(threads_.begin()); each != threads_.end(); ++each) each->join();
    ::close(listener_);
  }
  std::string uri() const { return "unix://" + path(); }
  void spoil(std::string word, std::string other, int times) {
    REQUIRE(word.size() == other.size());
    const std::lock_guard lock(mutex_);
    spoilings_.push_back({std::move(word), std::move(other), times});
  }
  // Words so far that became others.
  int struck() {
    const std::lock_guard lock(mutex_);
    return struck_;
  }

 private:
  struct Spoiling {
    std::string word, other;
    int times;
  };

  std::string path() const { return (folder_ / "relay").string(); }

  void accept_all() {
    int peer = 0;
    while ((peer = ::accept(listener_, nullptr, nullptr)) >= 0) {
      const int server = unix_socket();
      const sockaddr_un address = unix_address(server_);
      const bool found =
          ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
      const std::lock_guard lock(mutex_);
      if (!found || ending_) ::shutdown(peer, SHUT_RDWR);
      peers_.push_back(peer);
      threads_.emplace_back([this, peer, server] { pass_on(peer, server); });
    }
  }

  void pass_on(int peer, int server) {
    std::array<pollfd, 2> polled{pollfd{peer, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    std::array<char, 65536> bytes{};
    while (::poll(polled.data(), polled.size(), -1) > 0) {
      const bool up = polled[0].revents != 0;
      const ssize_t got = ::recv(up ? peer : server, bytes.data(), bytes.size(), 0);
      if (got <= 0) break;
      const std::string passed = spoilt({bytes.data(), static_cast<std::size_t>(got)});
      ::send(up ? server : peer, passed.data(), passed.size(), MSG_NOSIGNAL);
    }
    {
      const std::lock_guard lock(mutex_);
      peers_.remove(peer);
    }
    ::close(peer);
    ::close(server);
  }

  std::string spoilt(std::string text) {
    const std::lock_guard lock(mutex_);
    for (Spoiling& each : spoilings_) {
      const std::size_t at = text.find(each.word);
      if (each.times == 0 || at == std::string::npos) continue;
      text.replace(at, each.word.size(), each.other);
      each.times -= 1;
      struck_ += 1;
    }
    return text;
  }

  const std::string server_;
  const TempDir folder_;
  const int listener_;
  std::mutex mutex_;
  bool ending_ = false;
  std::list<int> peers_;
  std::list<Spoiling> spoilings_;
  int struck_ = 0;
  std::list<std::thread> threads_;
};

std::string path_of(const RedisServer& server) {
  return quick_options(server.unix_uri()).address.unix_path;
}

}  // namespace

TEST_CASE("a refusal of what became of a request on its way is not believed", "[redis]") {
  RedisServer server({"secret", false, ""});
  SpoilingRelay relay(path_of(server));
  RedisOptions options = quick_options(relay.uri());
  options.credentials.password = Secret("secret");
  const auto store = open(options);
  const auto values = pattern(9, 1);
  // In turn: no command, no number, no answer of Redis, no password.
  relay.spoil("SETEX", "SETEY", 2);
  require(put(*store, contribution_key(0, 1), info_of(1, values.size()), values));
  relay.spoil("604800", "6048p0", 1);
  require(put(*store, contribution_key(0, 1), info_of(2, values.size()), values));
  relay.spoil("+OK", ";OK", 1);
  require(put(*store, contribution_key(0, 1), info_of(3, values.size()), values));
  relay.spoil("SETEX", "SETEY", 1);
  relay.spoil("AUTH", "AUTI", 1);
  require(put(*store, contribution_key(0, 1), info_of(4, values.size()), values));
  CHECK(relay.struck() == 6);
  std::vector<float> target(values.size());
  require(get(*store, contribution_key(0, 1), kModel, target));
  CHECK(target == values);
}

TEST_CASE("a refusal that is repeated is believed", "[redis]") {
  RedisServer server;
  SpoilingRelay relay(path_of(server));
  const auto store = open(relay.uri());
  const auto values = pattern(9, 1);
  relay.spoil("SETEX", "SETEY", 3);
  const auto refused = put(*store, contribution_key(0, 1), info_of(1, values.size()), values);
  REQUIRE(code_of(refused) == ErrorCode::kInternal);
  CHECK(refused.error().message.find("unknown command") != std::string::npos);
  CHECK(relay.struck() == 3);
}

}  // namespace speedo::test
