// A connection of a gate with sockets of this process, and a clock of the test's.
#include "gate/gate_connection.hpp"

#include <memory>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "support/catch.hpp"

#include "admission_sides.hpp"
#include "basp_bytes.hpp"

namespace speedo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kSocketBytes = 4096;  // few, so that what is not taken shows

GateLink link_of(bool from_server, Instant now) {
  std::string greeting;
  const test::Credentials none = GateCredentials::none();
  auto admission = from_server
                       ? Admission::call(none, {test::kSpoken, GateRole::kWorker, "h"}).value()
                       : Admission::listen(none, test::kSpoken, greeting).value();
  return GateLink(std::move(admission), greeting, [from_server](const AdmittedPeer&) {
    return BaspRules{.from_server = from_server,
                     .application = test::kCafApplication,
                     .messages = {"speedo::HelloMessage"}};
  }, now);
}

// A gate's connection to a peer that does with its socket what the test says, and CAF behind it.
class Connected {
 public:
  // `stopped`: how long this process stands still each time, before it looks at what has come.
  explicit Connected(milliseconds stopped = milliseconds{0}) {
    SocketPair network = make_socket_pair().value(), local = make_socket_pair().value();
    const int size = kSocketBytes;
    ::setsockopt(network.gate->get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    peer_ = std::move(network.caf);
    caf_ = std::move(local.caf);
    connection_ = std::make_unique<GateConnection>(std::move(network.gate), link_of(false, now_),
                                                   PeerAddress{"a peer", "h"});
    GateLink caller = link_of(true, now_);
    while (!connection_->link().was_admitted()) {
      REQUIRE(goes_on(milliseconds{0}));
      caller.from_network(take(kSocketBytes), now_);
      say(std::exchange(caller.to_network(), {}));
      REQUIRE(goes_on(stopped));
    }
    caller.from_network(take(kSocketBytes), now_);
    connection_->give_local(std::move(local.gate));
    say(test::client_handshake('w'));
    // CAF's end may be what is looked at first.
    REQUIRE(goes_on(stopped, GateConnection::Ends::kLocal));
    REQUIRE(goes_on(milliseconds{0}));
    REQUIRE_FALSE(connection_->link().deadline());
  }

  // What the peer takes, at most.
  std::string take(std::size_t bytes) {
    std::string taken(bytes, '\0');
    const ssize_t got = ::recv(peer_->get(), taken.data(), bytes, MSG_DONTWAIT);
    taken.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return taken;
  }
  void say(const std::string& bytes) {
    REQUIRE(::send(peer_->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
            static_cast<ssize_t>(bytes.size()));
  }
  // As CAF does: whatever room there is, it has more. How much that was.
  std::size_t fill() {
    const std::string much(kGateBufferBytes, 'x');
    std::size_t all = 0;
    for (ssize_t sent = 0; sent >= 0; all += sent > 0 ? static_cast<std::size_t>(sent) : 0) {
      sent = ::send(caf_->get(), much.data(), much.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return all;
  }
  bool goes_on(milliseconds time, GateConnection::Ends ends = GateConnection::Ends::kBoth) {
    now_ += time;
    return !connection_->service(now_, ends);
  }
  // A word of CAF's, and how much CAF has been told.
  void say_of_caf(const std::string& bytes) {
    REQUIRE(::send(caf_->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
            static_cast<ssize_t>(bytes.size()));
  }
  std::size_t told_caf() {
    int bytes = 0;
    REQUIRE(::ioctl(caf_->get(), FIONREAD, &bytes) == 0);
    return static_cast<std::size_t>(bytes);
  }
  void end_caf() { caf_.reset(); }
  // Whether the loop has a reason to call service() at once: what epoll tells of the sockets.
  bool has_news() {
    const auto tells = [](int socket, std::uint32_t interest) {
      pollfd entry{.fd = socket, .events = static_cast<short>(interest), .revents = 0};
      return interest != 0 && ::poll(&entry, 1, 0) > 0;
    };
    return tells(connection_->network(), connection_->network_interest()) ||
           (connection_->has_local() && tells(connection_->local(), connection_->local_interest()));
  }
  const GateLink& link() const { return connection_->link(); }
  Instant now() const { return now_; }

 private:
  Instant now_{std::chrono::hours{1}};
  std::unique_ptr<Descriptor> peer_, caf_;
  std::unique_ptr<GateConnection> connection_;
};

}  // namespace

TEST_CASE("a peer that takes a little of much, now and then, is given up after a while") {
  for (const std::size_t piece : {0, 1000, 100000}) {
    INFO(piece);
    Connected connected;
    const Instant begun = connected.now();
    bool stays = true;
    while (stays && connected.now() < begun + 3 * kGateStall) {
      for (int i = 0; i < 20 && stays; ++i) {
        connected.fill();
        stays = connected.goes_on(milliseconds{5});
      }
      // All that is on its way by now.
      for (std::size_t taken = 0; stays && taken < piece;) {
        const std::size_t size = connected.take(piece - taken).size();
        taken += size;
        stays = connected.goes_on(milliseconds{1});
        if (size == 0) break;
      }
    }
    CHECK_FALSE(stays);
    CHECK(connected.now() >= begun + kGateStall);
    CHECK(connected.now() < begun + kGateStall + seconds{2});
  }
}

TEST_CASE("what has come is looked for at the end that is named alone") {
  using Ends = GateConnection::Ends;
  Connected connected;
  const std::size_t told = connected.told_caf();
  const std::string beat = test::heartbeat();
  const std::string word = "a word";
  connected.say(beat);
  connected.say_of_caf(word);

  REQUIRE(connected.goes_on(milliseconds{0}, Ends::kNetwork));
  CHECK(connected.told_caf() == told + beat.size());
  CHECK(connected.take(kSocketBytes).empty());

  connected.say(beat);
  REQUIRE(connected.goes_on(milliseconds{0}, Ends::kLocal));
  CHECK(connected.told_caf() == told + beat.size());
  CHECK(connected.take(kSocketBytes) == word);

  REQUIRE(connected.goes_on(milliseconds{0}));
  CHECK(connected.told_caf() == told + 2 * beat.size());
}

TEST_CASE("a peer that takes all at last has its time anew") {
  Connected connected;
  for (int round = 0; round < 3; ++round) {
    connected.fill();
    REQUIRE(connected.goes_on(milliseconds{0}));
    REQUIRE(connected.goes_on(kGateStall - seconds{1}));
    while (!connected.take(kGateBufferBytes).empty()) REQUIRE(connected.goes_on(milliseconds{0}));
    REQUIRE(connected.goes_on(kGateRelief));
  }
}

TEST_CASE("what has come while this process was stopped counts, however late it is looked at") {
  const Connected connected(2 * kAdmissionPatience);
  CHECK(connected.link().state() == GateLink::State::kOpen);
}

TEST_CASE("a peer that is cut after good words in one piece gives the loop nothing more to do") {
  Connected connected;
  const std::size_t told = connected.told_caf();
  connected.say(test::heartbeat() + test::direct_message("@<>+@exit_msg"));
  REQUIRE(connected.goes_on(milliseconds{0}));
  REQUIRE(connected.link().was_cut());
  CHECK_FALSE(connected.has_news());
  CHECK(connected.told_caf() == told);
}

TEST_CASE("CAF's end is noticed once, though neither side has taken all that there is for it") {
  Connected connected;
  std::string beats;
  while (beats.size() < kSocketBytes) beats += test::heartbeat();
  for (std::size_t told = 0; told != connected.told_caf();) {
    told = connected.told_caf();
    connected.say(beats);
    REQUIRE(connected.goes_on(milliseconds{0}));
  }
  const std::size_t said = connected.fill();
  REQUIRE(connected.goes_on(milliseconds{0}));
  connected.end_caf();
  REQUIRE(connected.goes_on(milliseconds{0}));
  CHECK_FALSE(connected.has_news());
  // What it said before still leaves.
  std::size_t taken = 0;
  for (std::size_t size = 1; size > 0; taken += size) {
    REQUIRE(connected.goes_on(milliseconds{0}));
    size = connected.take(kGateBufferBytes).size();
  }
  CHECK(taken == said);
}

}  // namespace speedo
