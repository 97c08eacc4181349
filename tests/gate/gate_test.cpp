// Gates with real sockets, and what comes to their port.
#include "gate/gate.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <speedo/base/limits.hpp>

#include "base/name_lookup.hpp"
#include "support/catch.hpp"
#include "support/descriptor_limit.hpp"
#include "support/free_port.hpp"
#include "support/log_capture.hpp"
#include "support/manual_clock.hpp"
#include "support/silent_address.hpp"

#include "admission_sides.hpp"
#include "basp_bytes.hpp"
#include "gate_port.hpp"

namespace speedo {
namespace {

using std::chrono::milliseconds;
using test::caller_of;
using test::check_talk;
using test::kNoStop;
using test::Knocking;
using test::Port;
using test::read_from;
using test::Sides;
using test::write_to;

// Whether the other side has not closed it yet.
bool is_open(int socket) {
  char piece[4096];
  ssize_t got = 0;
  do {
    got = ::recv(socket, piece, sizeof(piece), MSG_DONTWAIT);
  } while (got > 0);
  return got < 0 && errno == EAGAIN;
}

// As a gate without protection does, with one descriptor.
void let_one_in(const ListeningSocket& port, const std::stop_token& stop) {
  std::string words;
  const auto admission = Admission::listen(GateCredentials::none(), test::kSpoken, words).value();
  pollfd knock{.fd = port.socket->get(), .events = POLLIN, .revents = 0};
  while (::poll(&knock, 1, 10) <= 0 && !stop.stop_requested()) {
  }
  const Descriptor socket(::accept4(port.socket->get(), nullptr, nullptr, SOCK_CLOEXEC));
  while (socket.get() >= 0 && !stop.stop_requested()) {
    (void)!::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
    words.clear();
    pollfd entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (!Sides::runs(*admission) || ::poll(&entry, 1, 10) <= 0) continue;
    const std::string heard = read_from(socket.get(), 1);
    if (heard.empty()) return;
    admission->receive(heard, words);
  }
}

Error refusal_of(const GateFiles& listens, const GateFiles& calls) {
  Port port(listens);
  const auto called = caller_of(calls)->call("127.0.0.1", port.number(), kNoStop);
  REQUIRE_FALSE(called);
  CHECK(port.arrivals() == 0);
  CHECK(port.gate().counts().admitted == 0);
  return called.error();
}

}  // namespace

TEST_CASE("CAF speaks with CAF through two gates, under a token and without") {
  const test::TokenFolder tokens;
  for (const GateFiles& files : {tokens.files("a"), GateFiles{}}) {
    Port port(files);
    const auto gate = caller_of(files);
    auto first = gate->call("127.0.0.1", port.number(), kNoStop);
    REQUIRE(first);
    check_talk(port.arrived(0), first->caf->get());
    auto second = gate->call("localhost", port.number(), kNoStop);
    REQUIRE(second);
    check_talk(port.arrived(1), second->caf->get());
    CHECK(*first->alive);
    first->caf.reset();  // CAF has enough
    CHECK(read_from(port.arrived(0), 1).empty());
    for (int i = 0; i < 6000 && *first->alive; ++i) std::this_thread::sleep_for(milliseconds{10});
    CHECK_FALSE(*first->alive);
    CHECK(port.gate().counts().admitted == 2);
  }
}

TEST_CASE("a gate that is lent is served by who has it, and by itself before and afterwards") {
  const test::TokenFolder tokens;
  std::vector<std::thread::id> served_by;  // of those who come one after another
  Port port(tokens.files("a"), [&] { served_by.push_back(std::this_thread::get_id()); });
  const auto gate = caller_of(tokens.files("a"));
  const auto call = [&](std::size_t which) {
    auto made = gate->call("127.0.0.1", port.number(), kNoStop);
    REQUIRE(made);
    check_talk(port.arrived(which), made->caf->get());
    return made;
  };
  const auto before = call(0);
  port.gate().lend();
  std::jthread server([&](const std::stop_token& stop) {
    pollfd entry{.fd = port.gate().events(), .events = POLLIN, .revents = 0};
    while (!stop.stop_requested()) {
      if (::poll(&entry, 1, 10) > 0) port.gate().serve();
    }
  });
  const std::thread::id lent_to = server.get_id();
  const auto meanwhile = call(1);
  // Deadlines are met as ever, and who knocks and says nothing has one.
  const auto silent = port.knock();
  read_from(silent->get(), kGreetingBytes);
  CHECK(read_from(silent->get(), 1).empty());
  server.request_stop();
  server.join();
  port.gate().take_back();
  const auto afterwards = call(2);
  CHECK(served_by[0] != lent_to);
  CHECK(served_by[1] == lent_to);
  CHECK(served_by[2] == served_by[0]);
  write_to(before->caf->get(), test::direct_message("@<>+speedo::HelloMessage", "words"));
  CHECK(read_from(port.arrived(0), 5).size() == 5);
}

TEST_CASE("more than any buffer holds arrives whole, though one side reads slowly") {
  const test::TokenFolder tokens;
  Port port(tokens.files("a"));
  const auto gate = caller_of(tokens.files("a"));
  auto call = gate->call("127.0.0.1", port.number(), kNoStop);
  REQUIRE(call);
  check_talk(port.arrived(0), call->caf->get());
  std::string one = test::direct_message("@<>+speedo::HelloMessage", std::string(4000, 'x'));
  const std::size_t count = 2000;
  std::thread writer([&] {
    for (std::size_t i = 0; i < count; ++i) {
      std::string_view left = one;
      while (!left.empty()) {
        const ssize_t sent = ::send(call->caf->get(), left.data(), left.size(), MSG_NOSIGNAL);
        if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
        if (sent < 0) std::this_thread::sleep_for(milliseconds{1});
      }
    }
  });
  std::this_thread::sleep_for(milliseconds{100});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (read_from(port.arrived(0), one.size()) != one) ++wrong;
  }
  writer.join();
  CHECK(wrong == 0);
}

TEST_CASE("a gate waits for a peer that reads nothing, though CAF has ended, and does not spin") {
  Port port({});
  const auto gate = caller_of({});
  const auto call = gate->call("127.0.0.1", port.number(), kNoStop);
  REQUIRE(call);
  check_talk(port.arrived(0), call->caf->get());
  const std::string one = test::direct_message("@<>+speedo::HelloMessage", std::string(4000, 'x'));
  // Until every buffer on the way is full.
  std::size_t place = 0;
  for (int full = 0; full < 20;) {
    const ssize_t sent = ::send(port.arrived(0), one.data() + place, one.size() - place,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    full = sent > 0 ? 0 : full + 1;
    if (sent > 0) place = (place + static_cast<std::size_t>(sent)) % one.size();
    if (sent <= 0) std::this_thread::sleep_for(milliseconds{10});
  }
  port.end(0);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::seconds{1});
  // Of the processor; a loop that spins takes what of it is to be had.
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 50);
}

TEST_CASE("who is silent for longer than is borne is given up, and nobody else") {
  Port port({});
  const auto patient = caller_of({}), gate = caller_of({});
  const auto stays = patient->call("127.0.0.1", port.number(), kNoStop);
  const auto goes = gate->call("127.0.0.1", port.number(), kNoStop);
  REQUIRE(stays);
  REQUIRE(goes);
  check_talk(port.arrived(0), stays->caf->get());
  check_talk(port.arrived(1), goes->caf->get());
  patient->bear_silence(std::chrono::minutes{10});
  gate->bear_silence(milliseconds{1});
  CHECK(read_from(goes->caf->get(), 1).empty());
  CHECK(read_from(port.arrived(1), 1).empty());
  CHECK_FALSE(*goes->alive);
  CHECK(*stays->alive);
}

TEST_CASE("who has another token, or none, is refused, and CAF hears nothing of it") {
  const test::TokenFolder tokens;
  CHECK(refusal_of(tokens.files("a"), tokens.files("b")).code == ErrorCode::kRefused);
  CHECK(refusal_of(tokens.files("a"), {}).code == ErrorCode::kRefused);
  CHECK(refusal_of({}, tokens.files("a")).code == ErrorCode::kRefused);
}

TEST_CASE("what is called and is no gate is named") {
  const test::TokenFolder tokens;
  const auto gate = caller_of(tokens.files("a"));
  const auto error_at = [&](const std::string& host, std::uint16_t port, CallTools tools = {}) {
    const auto called = gate->call(host, port, kNoStop, tools);
    REQUIRE_FALSE(called);
    CHECK(called.error().code == ErrorCode::kUnavailable);
    return called.error().message;
  };
  test::ReservedPort silent;
  CHECK(error_at("127.0.0.1", silent.port()).find("is speedo-master running") !=
        std::string::npos);
  CHECK(error_at("no-such-host.invalid", 1).find("cannot resolve") != std::string::npos);
  // One that takes connections and says nothing; each look at the clock finds a second gone.
  silent.listen();
  class HurryingClock : public Clock {
   public:
    Instant now() const override { return std::chrono::seconds{++looks_}; }

   private:
    mutable std::atomic<int> looks_{0};
  };
  const HurryingClock clock;
  CHECK(error_at("127.0.0.1", silent.port(), {.clock = &clock, .look_up = ask_system})
            .find("no answer") != std::string::npos);
  const std::atomic<bool> stopped{true};
  CHECK_FALSE(gate->call("127.0.0.1", silent.port(), stopped));
}

TEST_CASE("hostile bytes at the port are counted, and a real peer comes in all the same") {
  const test::TokenFolder tokens;
  Port port(tokens.files("a"));
  std::vector<std::string> corpus = {
      "GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\nand more than sixty-four bytes of it",
      "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n and more than sixty-four bytes of it, too",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(600, '\x5a'),
      std::string(100, '\0'),
      std::string(100, '\xff'),
      test::client_handshake('w') + test::direct_message("@<>+@exit_msg"),
      test::basp({.operation = 3}, std::string(200, '\xff')),
      "SpeeDO\r\n" + std::string(56, '\0'),
      "SpeeDO\r\n" + std::string(56, '\xff'),
      std::string(200000, 'x')};
  for (const std::string& bytes : corpus) {
    const auto socket = port.knock();
    (void)!::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    CHECK(read_from(socket->get(), 100).size() <= kGreetingBytes + 1);
  }
  const std::uint64_t count = corpus.size();
  CHECK(port.counts_until([&](const GateCounts& all) { return all.turned_away() == count; }));
  CHECK(port.arrivals() == 0);
  CHECK(caller_of(tokens.files("a"))->call("127.0.0.1", port.number(), kNoStop));
}

TEST_CASE("idle connections without end do not keep a real peer out") {
  const test::TokenFolder tokens;
  Port port(tokens.files("a"));
  std::vector<std::unique_ptr<Descriptor>> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(port.knock());
    (void)!::send(idle.back()->get(), "S", 1, MSG_NOSIGNAL);
  }
  const auto gate = caller_of(tokens.files("a"));
  const auto call = gate->call("127.0.0.1", port.number(), kNoStop);
  REQUIRE(call);
  check_talk(port.arrived(0), call->caf->get());
  CHECK(port.counts_until([](const GateCounts& all) { return all.displaced >= 184; }));
  // Those that are too many for one address are closed, not only counted.
  std::size_t open = 0;
  for (const auto& socket : idle) open += is_open(socket->get()) ? 1U : 0U;
  CHECK(open <= 16);
}

TEST_CASE("who has said its word while the gate was busy makes no room for newer ones") {
  const test::TokenFolder tokens;
  std::promise<void> is_busy, goes_on;
  std::atomic<bool> first{true};
  Port port(tokens.files("a"), [&] {
    if (!first.exchange(false)) return;
    is_busy.set_value();
    goes_on.get_future().wait();
  });
  const test::Credentials credentials = tokens.credentials("a");
  std::vector<Knocking> knocking;
  for (int i = 0; i < 15; ++i) knocking.emplace_back(port, credentials);
  const auto gate = caller_of(tokens.files("a"));
  REQUIRE(gate->call("127.0.0.1", port.number(), kNoStop));
  is_busy.get_future().wait();
  // With the second of these there are more than one address may have.
  const auto more = port.knock(), most = port.knock();
  for (std::size_t i = 0; i < 2; ++i) write_to(knocking[i].socket->get(), knocking[i].words);
  goes_on.set_value();
  CHECK(knocking[0].comes_in());
  CHECK(knocking[1].comes_in());
  CHECK(port.gate().counts().displaced == 0);
}

TEST_CASE("a host whose first address is silent is called at its second") {
  Port port({});
  const test::SilentAddress silent("127.0.0.2", port.number());
  const auto call = caller_of({})->call(
      "two.invalid", port.number(), kNoStop,
      {.clock = &steady_clock(), .look_up = test::two_addresses("127.0.0.2", "127.0.0.1")});
  INFO((call ? "" : call.error().message));
  CHECK(call);
}

TEST_CASE("a call comes from the address that it is to come from, or says why it cannot") {
  const ListeningSocket port = listen_at("127.0.0.1", 0).value();
  const auto gate = caller_of({});
  {
    std::atomic<bool> has_come{false};
    const std::jthread call([&] {
      CHECK_FALSE(gate->call("127.0.0.1", port.port, has_come, {.source = "127.0.0.9"}));
    });
    pollfd entry{.fd = port.socket->get(), .events = POLLIN, .revents = 0};
    CHECK(::poll(&entry, 1, 60000) == 1);
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    const Descriptor come(::accept(port.socket->get(), reinterpret_cast<sockaddr*>(&from), &size));
    CHECK(address_of(from).host == "127.0.0.9");
    has_come = true;
  }
  const auto fault = [&](const std::string& source) {
    const auto call = gate->call("127.0.0.1", port.port, kNoStop, {.source = source});
    REQUIRE_FALSE(call);
    CHECK(call.error().code == ErrorCode::kUnavailable);
    return call.error().message;
  };
  CHECK(
      fault("::1").ends_with("of another kind of address than ::1, which it is to be called from"));
  // Of the class that no machine may have an address of (RFC 1112).
  CHECK(fault("240.0.0.1").find("calling from 240.0.0.1: ") != std::string::npos);
}

TEST_CASE("an address that cannot be called takes the place of no fault of one that can") {
  struct Both {
    HostAddresses four, six;
    addrinfo first;
  };
  const auto look_up = [](const std::string&, int port) -> Result<HostAddresses> {
    const auto both = std::make_shared<Both>(
        Both{read_numbers("127.0.0.1", port).value(), read_numbers("::1", port).value(), {}});
    both->first = *both->four;
    both->first.ai_next = const_cast<addrinfo*>(both->six.get());
    return HostAddresses(both, &both->first);
  };
  test::ReservedPort silent;
  const auto call =
      caller_of({})->call("two.invalid", silent.port(), kNoStop,
                          {.clock = &steady_clock(), .look_up = look_up, .source = "127.0.0.9"});
  REQUIRE_FALSE(call);
  CHECK(call.error().message.ends_with(
      "calling from 127.0.0.9: nobody listens; is speedo-master running there?"));
}

TEST_CASE("a shortage of descriptors is no reason to call no more, and is named") {
  const auto gate = caller_of({});
  // The last is enough for both sides of the connection, not for what lies behind it.
  for (const int spare : {0, 2}) {
    const ListeningSocket port = listen_at("127.0.0.1", 0).value();
    const std::jthread host([&port](const std::stop_token& stop) { let_one_in(port, stop); });
    std::optional<Error> failed;
    {
      const test::DescriptorLimit limit(spare);
      const auto call = gate->call("127.0.0.1", port.port, kNoStop);
      if (!call) failed = call.error();
    }
    REQUIRE(failed);
    INFO(failed->message);
    CHECK(failed->code == ErrorCode::kUnavailable);
    CHECK(failed->message.find("ulimit -n") != std::string::npos);
  }
}

TEST_CASE("of many that are let in few have a line in the log") {
  const test::LogCapture log;
  {
    Port port({});
    const auto gate = caller_of({});
    for (int i = 0; i < 3 * AuditPacer::kLinesMax; ++i) {
      CHECK(gate->call("127.0.0.1", port.number(), kNoStop));
    }
    CHECK(port.counts_until([](const GateCounts& all) {
      return all.admitted == 3 * AuditPacer::kLinesMax;
    }));
  }
  const std::string text = log.text();
  const auto lines = std::ranges::count(text, '\n');
  CHECK(lines >= AuditPacer::kLinesMax);
  CHECK(lines < 2 * AuditPacer::kLinesMax);
}

TEST_CASE("a peer that is let in and says what it may not is cut") {
  const test::TokenFolder tokens;
  Port port(tokens.files("a"));
  const auto gate = caller_of(tokens.files("a"));
  auto call = gate->call("127.0.0.1", port.number(), kNoStop);
  REQUIRE(call);
  check_talk(port.arrived(0), call->caf->get());
  write_to(call->caf->get(), test::direct_message("@<>+@exit_msg"));
  CHECK(read_from(port.arrived(0), 1).empty());
  CHECK(read_from(call->caf->get(), 1).empty());
  CHECK(port.counts_until([](const GateCounts& all) { return all.cut == 1; }));
}

TEST_CASE("a token that is changed in its file counts from then on; one that is damaged does not") {
  const test::TokenFolder tokens;
  const GateFiles files = tokens.files("a");
  Port port(files);
  const auto standing = caller_of(tokens.files("a"));
  const auto call = standing->call("127.0.0.1", port.number(), kNoStop);
  REQUIRE(call);
  const auto changed = caller_of(tokens.files("b"));
  std::ofstream(files.token) << std::string(43, 'b') << "\n";
  bool in = false;
  for (int i = 0; i < 600 && !in; ++i) {
    in = changed->call("127.0.0.1", port.number(), kNoStop).has_value();
    if (!in) std::this_thread::sleep_for(milliseconds{50});
  }
  CHECK(in);
  check_talk(port.arrived(0), call->caf->get());
  std::ofstream(files.token) << "short\n";
  std::this_thread::sleep_for(milliseconds{1200});
  CHECK(changed->call("127.0.0.1", port.number(), kNoStop));
}

TEST_CASE("a token that has changed on both sides is read before a refusal is believed") {
  const test::TokenFolder tokens;
  const GateFiles files = tokens.files("a");
  Port port(tokens.files("b"));
  const auto gate = caller_of(files);
  CHECK_FALSE(gate->call("127.0.0.1", port.number(), kNoStop));
  std::ofstream(files.token) << std::string(43, 'b') << "\n";
  CHECK(gate->call("127.0.0.1", port.number(), kNoStop));
}

TEST_CASE("a pipe in the place of a token's file is not waited for") {
  const test::TokenFolder tokens;
  const GateFiles files = tokens.files("a");
  Port port(files);
  std::filesystem::remove(files.token);
  REQUIRE(::mkfifo(files.token.c_str(), 0600) == 0);
  std::this_thread::sleep_for(milliseconds{1500});
  CHECK(caller_of(tokens.files("aa"))->call("127.0.0.1", port.number(), kNoStop));
  // Whoever waits for it goes on.
  const Descriptor writer(::open(files.token.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace speedo
