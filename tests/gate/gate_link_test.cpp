// A connection of a gate from its first byte to its last, with a clock of the test's.
#include "gate/gate_link.hpp"

#include <string>
#include <utility>

#include <speedo/base/limits.hpp>

#include "support/catch.hpp"

#include "admission_sides.hpp"
#include "basp_bytes.hpp"

namespace speedo {
namespace {

using State = GateLink::State;
using std::chrono::milliseconds;


GateLink::RulesOf rules(bool from_server) {
  return [from_server](const AdmittedPeer&) {
    return BaspRules{.from_server = from_server,
                     .application = test::kCafApplication,
                     .messages = {"speedo::HelloMessage"}};
  };
}

// A link that listens, and one that calls it.
struct Links {
  explicit Links(const test::Credentials& credentials)
      : listener(listening(credentials, now)),
        caller(Admission::call(credentials, {test::kSpoken, GateRole::kWorker, "h"}).value(), "",
               rules(true), now) {}

  static GateLink listening(const test::Credentials& credentials, Instant now) {
    std::string greeting;
    auto admission = Admission::listen(credentials, test::kSpoken, greeting).value();
    return GateLink(std::move(admission), greeting, rules(false), now);
  }
  void exchange() {
    while (!listener.to_network().empty() || !caller.to_network().empty()) {
      caller.from_network(std::exchange(listener.to_network(), {}), now);
      listener.from_network(std::exchange(caller.to_network(), {}), now);
    }
  }
  void open() {
    exchange();
    REQUIRE(listener.state() == State::kOpen);
    REQUIRE(caller.state() == State::kOpen);
  }
  // CAF's handshakes, as the nodes 'm' and 'w'.
  void greet() {
    open();
    listener.from_local(test::server_handshake('m', test::kCafApplication), now);
    caller.from_local(test::client_handshake('w'), now);
    exchange();
  }

  Instant now{std::chrono::hours{1}};
  GateLink listener, caller;
};

void pass_patience(Links& links, GateLink& link, milliseconds patience) {
  links.now += patience - milliseconds{1};
  link.pass_time(links.now);
  CHECK(link.state() != State::kEnded);
  links.now += milliseconds{1};
  link.pass_time(links.now);
  CHECK(link.state() == State::kEnded);
}

}  // namespace

TEST_CASE("what CAF says arrives at the other CAF, both ways, and ends with it") {
  const test::TokenFolder tokens;
  Links links(tokens.credentials("a"));
  links.greet();
  CHECK(links.caller.to_local() == test::server_handshake('m', test::kCafApplication));
  CHECK(links.listener.to_local() == test::client_handshake('w'));
  CHECK_FALSE(links.listener.deadline());
  links.listener.to_local().clear();
  links.caller.from_local(test::hello() + test::heartbeat(), links.now);
  links.exchange();
  CHECK(links.listener.to_local() == test::hello() + test::heartbeat());
  links.caller.local_ended(links.now);
  CHECK(links.caller.state() == State::kFarewell);
  CHECK_FALSE(links.caller.fault());
  links.exchange();
  links.listener.network_ended();
  CHECK(links.listener.state() == State::kEnded);
  CHECK_FALSE(links.listener.fault());
}

TEST_CASE("each step of an admission has its time, and no more") {
  const test::TokenFolder tokens;
  const auto mine = tokens.credentials("a");
  SECTION("who says nothing") {
    Links links(mine);
    pass_patience(links, links.listener, kAdmissionPatience);
    CHECK(links.listener.fault()->code == ErrorCode::kTimeout);
  }
  SECTION("who says all but one byte, each after a while") {
    Links links(mine);
    const milliseconds pause{10};
    for (std::size_t i = 1; i < kPreambleBytes; ++i) {
      links.now += pause;
      links.listener.from_network("S", links.now);
    }
    pass_patience(links, links.listener, kAdmissionPatience - (kPreambleBytes - 1) * pause);
  }
  SECTION("who proves the token and does not go on") {
    Links links(mine);
    links.caller.from_network(links.listener.to_network(), links.now);
    links.now += kAdmissionPatience / 2;
    links.listener.from_network(links.caller.to_network().substr(0, kPreambleBytes), links.now);
    CHECK(links.listener.step() == Admission::Step::kHandshake);
    pass_patience(links, links.listener, kAdmissionPatience);
    CHECK(links.listener.fault()->message.find("prove who it is") != std::string::npos);
  }
  SECTION("who is let in and whose CAF is silent") {
    Links links(mine);
    links.open();
    pass_patience(links, links.listener, kAdmissionPatience);
    CHECK(links.listener.was_cut());
  }
  SECTION("who is called and does not answer") {
    Links links(mine);
    pass_patience(links, links.caller, kAdmissionPatience);
  }
  SECTION("who does not take the last words") {
    Links links(mine);
    links.greet();
    links.listener.local_ended(links.now);
    pass_patience(links, links.listener, kGateFarewell);
    CHECK_FALSE(links.listener.fault());
  }
}

TEST_CASE("a peer that was let in is silent from its last byte on") {
  constexpr milliseconds kBorne{700};
  const test::TokenFolder tokens;
  Links links(tokens.credentials("a"));
  links.now += 2 * kBorne;
  CHECK_FALSE(links.listener.is_silent(links.now, kBorne));
  links.greet();
  links.now += kBorne - milliseconds{1};
  CHECK_FALSE(links.listener.is_silent(links.now, kBorne));
  links.caller.from_local(test::heartbeat(), links.now);
  links.exchange();
  links.now += kBorne - milliseconds{1};
  CHECK_FALSE(links.listener.is_silent(links.now, kBorne));
  CHECK(links.caller.is_silent(links.now, kBorne));
  links.now += milliseconds{1};
  CHECK(links.listener.is_silent(links.now, kBorne));
}

TEST_CASE("a peer that says what it may not is cut, and nothing of it reaches CAF") {
  const test::TokenFolder tokens;
  Links links(tokens.credentials("a"));
  links.greet();
  links.listener.to_local().clear();
  links.caller.from_local(test::direct_message("@<>+@exit_msg") + test::hello(), links.now);
  links.exchange();
  CHECK(links.listener.was_cut());
  CHECK(links.listener.state() == State::kFarewell);
  CHECK(links.listener.to_local().empty());
  CHECK(links.listener.fault()->message.find("@exit_msg") != std::string::npos);
  links.caller.from_local(test::hello(), links.now);
  links.listener.from_network(links.caller.to_network(), links.now);
  CHECK(links.listener.to_local().empty());
}

TEST_CASE("bytes that are changed, sent again or left out under way cut the connection") {
  const test::TokenFolder tokens;
  for (const int kind : {0, 1, 2}) {
    Links links(tokens.credentials("a"));
    links.greet();
    links.listener.to_local().clear();
    links.caller.from_local(test::hello(), links.now);
    std::string first = std::exchange(links.caller.to_network(), {});
    links.caller.from_local(test::heartbeat(), links.now);
    const std::string second = std::exchange(links.caller.to_network(), {});
    if (kind == 0) first[first.size() / 2] ^= 1;
    const std::string arrives = kind == 0   ? first + second
                                : kind == 1 ? first + first + second
                                            : second;
    links.listener.from_network(arrives, links.now);
    CHECK(links.listener.was_cut());
    CHECK(links.listener.to_local().empty());
  }
}

}  // namespace speedo
