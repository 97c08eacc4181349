#include "actors/endpoint_probe.hpp"

#include <string>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/catch.hpp"

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {
namespace {

// Listens on a free port; whoever connects gets `answer`, then silence or the end of the
// connection.
class Server {
 public:
  Server(std::string answer, bool keeps_open)
      : listener_(::socket(AF_INET, SOCK_STREAM, 0)), answer_(std::move(answer)),
        keeps_open_(keeps_open) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(listener_, 4) == 0);
    socklen_t size = sizeof(address);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    if (peer_ >= 0) ::close(peer_);
  }

  Address address() const { return {.host = "127.0.0.1", .port = port_}; }

 private:
  void serve() {
    peer_ = ::accept(listener_, nullptr, nullptr);
    if (peer_ < 0) return;
    (void)!::send(peer_, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    if (keeps_open_) return;
    ::close(peer_);
    peer_ = -1;
  }

  int listener_, peer_ = -1;
  std::string answer_;
  bool keeps_open_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

const std::atomic<bool> kNoStop{false};

void require_unavailable(const Address& address, const std::string& what) {
  const auto found = probe_endpoint(address, kNoStop);
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kUnavailable);
  CHECK(found.error().message.find(what) != std::string::npos);
}

}  // namespace

TEST_CASE("what does not greet like a master is told apart") {
  require_unavailable(Server("HTTP/1.1 400 Bad Request\r\n\r\n", true).address(), "something else");
  require_unavailable(Server("", false).address(), "closed the connection");
  require_unavailable(Server("\0\0\0", false).address(), "closed the connection");
  require_unavailable({.host = "no-such-host.invalid", .port = 1}, "cannot resolve");
}

TEST_CASE("nobody listening is said at once") {
  Address gone;
  { gone = Server("", true).address(); }
  require_unavailable(gone, "is speedo-master running");
}

TEST_CASE("a silent peer is given up in time, at once when stopped") {
  const Server silent("", true);
  const Instant start = steady_clock().now();
  require_unavailable(silent.address(), "no answer");
  CHECK(steady_clock().now() - start < kConnectionTimeout + std::chrono::seconds{2});

  const std::atomic<bool> stop{true};
  const Server other("", true);
  const Instant again = steady_clock().now();
  CHECK_FALSE(probe_endpoint(other.address(), stop));
  CHECK(steady_clock().now() - again < std::chrono::seconds{1});
}

}  // namespace speedo
