// How a server is connected to that answers little by little, or not at each of its addresses.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <sys/socket.h>

#include "base/descriptor.hpp"
#include "store/redis/redis_connection.hpp"
#include "store/redis/redis_session.hpp"
#include "store/store_under_test.hpp"
#include "support/descriptor_limit.hpp"
#include "support/silent_address.hpp"

namespace speedo::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RedisSession::Names kSystemNames{.look_up = ask_system, .stop = [] { return false; }};

// Takes one connection, and says `text`, a byte from time to time, and then more of its last byte.
// After ten seconds it goes.
class Dripper {
 public:
  static constexpr seconds kStays{10};

  explicit Dripper(std::string text)
      : text_(std::move(text)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = ipv4("127.0.0.1", 0);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    const bool listens = ::bind(listener_.get(), raw, size) == 0 &&
                         ::listen(listener_.get(), 8) == 0 &&
                         ::getsockname(listener_.get(), raw, &size) == 0;
    REQUIRE(listens);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { drip(stop); });
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void drip(const std::stop_token& stop) const {
    const Instant end = steady_clock().now() + kStays;
    std::size_t said = 0;
    Descriptor taken(-1);
    while (!stop.stop_requested() && steady_clock().now() < end) {
      pollfd polled{listener_.get(), POLLIN, 0};
      const bool knocks = taken.get() < 0 && ::poll(&polled, 1, 0) > 0;
      if (knocks) taken = Descriptor(::accept(listener_.get(), nullptr, nullptr));
      if (taken.get() >= 0 && !text_.empty()) {
        (void)!::send(taken.get(), &text_[std::min(said++, text_.size() - 1)], 1, MSG_NOSIGNAL);
      }
      std::this_thread::sleep_for(milliseconds{20});
    }
  }

  const std::string text_;
  const Descriptor listener_;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("a server whose first address is silent is reached by the next", "[redis]") {
  const RedisServer server;
  const SilentAddress silent("127.0.0.2", server.port());
  RedisOptions options = quick_options("redis://two.invalid:" + std::to_string(server.port()));
  options.connect_timeout = seconds{2};
  RedisSession::Names names = kSystemNames;
  names.look_up = two_addresses("127.0.0.2", "127.0.0.1");
  require(RedisSession::connect(options, std::nullopt, names));
}

TEST_CASE("a server that says something again and again has no more time for it", "[redis]") {
  const std::string record("\x16\x03\x03\x20\x00\x02", 6);
  for (const auto& [scheme, text] : {std::pair<std::string, std::string>{"redis://", "+x"},
                                     std::pair<std::string, std::string>{"rediss://", record}}) {
    const Dripper server(text);
    RedisOptions options = quick_options(scheme + server.address());
    options.connect_timeout = milliseconds{300};
    const Instant begun = steady_clock().now();
    const auto session = RedisSession::connect(options, std::nullopt);
    REQUIRE_FALSE(session);
    CHECK(session.error().code == ErrorCode::kTimeout);
    CHECK(steady_clock().now() - begun < Dripper::kStays / 2);
    options.credentials.password = Secret("hush");
    const Dripper other(text);
    options.address = quick_options(scheme + other.address()).address;
    CHECK(code_of(RedisSession::connect(options, std::nullopt)) == ErrorCode::kTimeout);
  }
}

TEST_CASE("a server that says nothing is not waited for by one who is to stop", "[redis]") {
  for (const std::string scheme : {"redis://", "rediss://"}) {
    const Dripper server("");
    RedisOptions options = quick_options(scheme + server.address());
    options.connect_timeout = std::chrono::hours{1};
    const Instant stop_at = steady_clock().now() + milliseconds{300};
    RedisSession::Names names = kSystemNames;
    names.stop = [&] { return steady_clock().now() >= stop_at; };
    CHECK(code_of(RedisSession::connect(options, std::nullopt, names)) == ErrorCode::kUnavailable);
    CHECK(steady_clock().now() - stop_at < Dripper::kStays / 2);
  }
}

TEST_CASE("a process without descriptors is told to have more, and goes on", "[redis]") {
  const RedisServer server;
  const RedisOptions options = quick_options(server.tcp_uri());
  const auto incarnations = std::make_shared<std::atomic<std::uint64_t>>(0);
  const auto ask = [](RedisConnection& connection) {
    auto operation = std::make_shared<KvOperation>();
    operation->key = "key";
    connection.submit(operation);
    operation->wait();
    return operation->error;
  };
  std::optional<Error> full, unavailable;
  {
    const DescriptorLimit limit;
    RedisConnection connection(options, nullptr, incarnations);
    full = ask(connection);
    const auto session = RedisSession::connect(options, std::nullopt);
    if (!session) unavailable = session.error();
  }
  REQUIRE(full);
  CHECK(full->code == ErrorCode::kFull);
  CHECK_THAT(full->message, Catch::Contains("ulimit -n"));
  REQUIRE(unavailable);
  CHECK(unavailable->code == ErrorCode::kUnavailable);
  CHECK_THAT(unavailable->message, Catch::Contains("ulimit -n"));
  RedisConnection connection(options, nullptr, incarnations);
  const auto error = ask(connection);
  CHECK((!error || error->code == ErrorCode::kNotFound));
}

}  // namespace speedo::test
