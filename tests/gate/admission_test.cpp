// How two gates come to trust each other: every split of what they say, every kind of refusal.
#include "gate/admission.hpp"

#include <string>

#include "support/catch.hpp"

#include "admission_sides.hpp"

namespace speedo {
namespace {

using test::Sides;
using test::TokenFolder;
using Step = Admission::Step;

// That what one side says in the channel reaches the other, and nobody on the way reads it.
void check_channel(Sides& sides, bool is_hidden) {
  const auto listens = sides.listener->take_channel(), calls = sides.caller->take_channel();
  std::string wire, heard, answer;
  REQUIRE(listens->send("a word that nobody knows", wire));
  CHECK((wire.find("nobody") == std::string::npos) == is_hidden);
  REQUIRE(calls->receive(wire, heard, answer));
  CHECK(sides.caller->take_rest() + heard == "a word that nobody knows");
}

void check_refused(Sides& sides, Refusal refusal, ErrorCode code) {
  sides.run();
  REQUIRE(sides.listener->step() == Step::kEnded);
  CHECK(sides.listener->refusal() == refusal);
  REQUIRE(sides.caller->step() == Step::kEnded);
  INFO(sides.caller->error().message);
  CHECK(sides.caller->error().code == code);
}

}  // namespace

TEST_CASE("two sides with one token come together, in pieces of any size") {
  const TokenFolder tokens;
  const auto mine = tokens.credentials("a");
  for (const std::size_t piece : {1, 2, 3, 5, 7, 16, 31, 63, 64, 65, 200, 100000}) {
    CAPTURE(piece);
    Sides sides(mine, mine);
    sides.run(piece);
    REQUIRE(sides.both_in());
    CHECK(sides.listener->peer().role == GateRole::kWorker);
    check_channel(sides, true);
  }
}

TEST_CASE("every split of what two sides say in two is the same") {
  const TokenFolder tokens;
  const auto mine = tokens.credentials("a");
  Sides whole(mine, mine);
  whole.run();
  REQUIRE(whole.both_in());
  for (std::size_t piece = 1; piece < whole.sent_to_listener; ++piece) {
    Sides sides(mine, mine);
    sides.run(piece);
    REQUIRE(sides.both_in());
  }
}

TEST_CASE("without a token all come in, and all is in clear") {
  const auto none = GateCredentials::none();
  Sides sides(none, none);
  sides.run(1);
  REQUIRE(sides.both_in());
  check_channel(sides, false);
}

TEST_CASE("one who watches is known as such") {
  const TokenFolder tokens;
  Sides sides(tokens.credentials("a"), tokens.credentials("a"),
              {.protocol = test::kSpoken, .role = GateRole::kWatcher});
  sides.run();
  REQUIRE(sides.both_in());
  CHECK(sides.listener->peer().role == GateRole::kWatcher);
}

TEST_CASE("while a token is being changed both are let in") {
  const TokenFolder tokens;
  for (const char* caller : {"a", "b", "ba"}) {
    Sides sides(tokens.credentials("ba"), tokens.credentials(caller));
    sides.run();
    CHECK(sides.both_in());
  }
  Sides late(tokens.credentials("b"), tokens.credentials("a"));
  check_refused(late, Refusal::kUnknownKey, ErrorCode::kRefused);
}

TEST_CASE("another token is refused before TLS is spoken") {
  const TokenFolder tokens;
  Sides sides(tokens.credentials("a"), tokens.credentials("b"));
  check_refused(sides, Refusal::kUnknownKey, ErrorCode::kRefused);
  CHECK(sides.sent_to_caller == kGreetingBytes + 1);
}

TEST_CASE("a peer of another protocol is told so, by whoever notices") {
  const TokenFolder tokens;
  for (const std::uint32_t protocol : {test::kSpoken - 1, test::kSpoken + 1}) {
    Sides sides(tokens.credentials("a"), tokens.credentials("a"),
                {.protocol = protocol, .role = GateRole::kWorker});
    sides.run();
    REQUIRE(sides.caller->step() == Step::kEnded);
    CHECK(sides.caller->error().code == ErrorCode::kMismatch);
    CHECK(sides.caller->error().message.find("another version") != std::string::npos);
    CHECK(sides.sent_to_listener == 0);
  }
}

TEST_CASE("one with a token does not talk to one who lets everybody in, nor the other way") {
  const TokenFolder tokens;
  Sides careless(GateCredentials::none(), tokens.credentials("a"));
  careless.run();
  REQUIRE(careless.caller->step() == Step::kEnded);
  CHECK(careless.caller->error().code == ErrorCode::kRefused);
  CHECK(careless.caller->error().message.find("lets everybody in") != std::string::npos);
  Sides bare(tokens.credentials("a"), GateCredentials::none());
  bare.run();
  REQUIRE(bare.caller->step() == Step::kEnded);
  CHECK(bare.caller->error().code == ErrorCode::kRefused);
  CHECK(bare.caller->error().message.find("--token-file") != std::string::npos);
}

TEST_CASE("a byte that is changed on its way lets nobody in unless both agree on all of it") {
  const TokenFolder tokens;
  const auto mine = tokens.credentials("a");
  Sides whole(mine, mine);
  whole.run();
  int in_all_the_same = 0;
  for (const bool to_listener : {true, false}) {
    const std::size_t bytes = to_listener ? whole.sent_to_listener : whole.sent_to_caller;
    for (std::size_t place = 0; place < bytes; ++place) {
      Sides sides(mine, mine);
      sides.run(SIZE_MAX, {to_listener, place});
      if (!sides.both_in()) continue;
      ++in_all_the_same;
      check_channel(sides, true);
    }
  }
  // TLS itself does not look at the minor version of a record that is in clear.
  CHECK(in_all_the_same <= 2);
}

TEST_CASE("whatever is sent to a gate, it answers nothing but its greeting to strangers") {
  const TokenFolder tokens;
  for (const std::string& said :
       {std::string("GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: */*\r\nMore: and more of it\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") + std::string(100, 'x'),
        std::string(100, '\0'), std::string(100000, '\xff')}) {
    std::string answer;
    const auto side = Admission::listen(tokens.credentials("a"), test::kSpoken, answer).value();
    answer.clear();
    side->receive(said, answer);
    CHECK(side->step() == Step::kEnded);
    CHECK(side->refusal() == Refusal::kNone);
    CHECK(answer.empty());
  }
}

TEST_CASE("one who calls something else than a gate says what it found") {
  const auto found = [](const std::string& greeting) {
    const auto side =
        Admission::call(GateCredentials::none(), {test::kSpoken, GateRole::kWorker, "h"}).value();
    std::string answer;
    side->receive(greeting, answer);
    if (Sides::runs(*side)) side->end();
    CHECK(answer.empty());
    return side->error();
  };
  CHECK(found("HTTP/1.1 400 Bad Request\r\n\r\nand so on").message.find("something else") == 0);
  const Error old = found(std::string("\0\0\0\0\0\0\0\x33\0\0\0\0\0\0\0\x03", 16) +
                          std::string(16, '\0'));
  CHECK(old.code == ErrorCode::kMismatch);
  CHECK(old.message.find("older SpeeDO") != std::string::npos);
  CHECK(found("").message.find("closed the connection") == 0);
  CHECK(found("SpeeDO\r\n").message.find("closed the connection") == 0);
}

TEST_CASE("a side whose peer goes at any moment ends, with a reason") {
  const TokenFolder tokens;
  const auto mine = tokens.credentials("a");
  Sides whole(mine, mine);
  whole.run();
  for (std::size_t bytes = 0; bytes < whole.sent_to_listener; ++bytes) {
    Sides sides(mine, mine);
    std::size_t left = bytes;
    while (left > 0) {
      sides.caller->receive(std::exchange(sides.to_caller, {}), sides.to_listener);
      const std::string said = std::exchange(sides.to_listener, {}).substr(0, left);
      if (said.empty()) break;
      left -= said.size();
      sides.listener->receive(said, sides.to_caller);
    }
    REQUIRE(Sides::runs(*sides.listener));
    sides.listener->end();
    CHECK(sides.listener->step() == Step::kEnded);
    CHECK(sides.listener->error().code == ErrorCode::kUnavailable);
  }
}

}  // namespace speedo
