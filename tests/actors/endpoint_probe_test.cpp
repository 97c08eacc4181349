#include "actors/endpoint_probe.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/manual_clock.hpp"

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
  void wait_for_peer() { has_peer_.get_future().get(); }

 private:
  void serve() {
    peer_ = ::accept(listener_, nullptr, nullptr);
    if (peer_ < 0) return;
    has_peer_.set_value();
    (void)!::send(peer_, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    if (keeps_open_) return;
    ::close(peer_);
    peer_ = -1;
  }

  int listener_, peer_ = -1;
  std::string answer_;
  bool keeps_open_;
  std::uint16_t port_ = 0;
  std::promise<void> has_peer_;
  std::thread thread_;
};

const std::atomic<bool> kNoStop{false};

// Whoever looks at it finds that a second has passed.
class HurryingClock : public Clock {
 public:
  Instant now() const override { return std::chrono::seconds{++looks_}; }

 private:
  mutable std::atomic<int> looks_{0};
};

void require_unavailable(const Address& address, const std::string& what,
                         const ProbeTools& tools = {}) {
  const auto found = probe_endpoint(address, kNoStop, tools);
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kUnavailable);
  INFO(found.error().message);
  CHECK(found.error().message.find(what) != std::string::npos);
}

// The greeting of a CAF node with `length` bytes to follow.
std::string greeting(unsigned length) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 4; ++i) bytes[7 - i] = static_cast<char>(length >> (8 * i) & 0xffU);
  return bytes;
}

}  // namespace

TEST_CASE("what greets like a master is found, by its address in numbers") {
  const Server server(greeting(100), true);
  const auto found = probe_endpoint(server.address(), kNoStop);
  REQUIRE(found);
  CHECK(found->host == "127.0.0.1");
  CHECK(found->port == server.address().port);
}

TEST_CASE("what does not greet like a master is told apart") {
  require_unavailable(Server("HTTP/1.1 400 Bad Request\r\n\r\n", true).address(), "something else");
  require_unavailable(Server(greeting(0), true).address(), "something else");
  require_unavailable(Server(greeting(kMessageBytesMax + 1), true).address(), "something else");
  require_unavailable(Server("", false).address(), "closed the connection");
  require_unavailable(Server(std::string(3, '\0'), false).address(), "closed the connection");
  require_unavailable({.host = "no-such-host.invalid", .port = 1}, "cannot resolve");
}

TEST_CASE("nobody listening is said at once") {
  const test::ReservedPort silent;
  const Address nobody{.host = "127.0.0.1", .port = silent.port()};
  const test::ManualClock still;
  require_unavailable(nobody, "is speedo-master running", {.clock = &still, .look_up = ask_system});
}

TEST_CASE("a silent peer is given up in time") {
  const Server silent(std::string(3, '\0'), true);
  const HurryingClock clock;
  require_unavailable(silent.address(), "no answer", {.clock = &clock, .look_up = ask_system});
  const Instant took = clock.now();
  CHECK(took > kConnectionTimeout);
  CHECK(took < kConnectionTimeout + std::chrono::seconds{10});
}

TEST_CASE("an attempt is broken off when stopped, before it and while it waits") {
  const test::ManualClock still;
  const ProbeTools tools{.clock = &still, .look_up = ask_system};
  const std::atomic<bool> stopped{true};
  const Server silent("", true);
  CHECK_FALSE(probe_endpoint(silent.address(), stopped, tools));

  std::atomic<bool> stop{false};
  Server other("", true);
  auto attempt = std::async(std::launch::async, [&] {
    return probe_endpoint(other.address(), stop, tools).has_value();
  });
  other.wait_for_peer();
  stop = true;
  CHECK_FALSE(attempt.get());
}

}  // namespace speedo
