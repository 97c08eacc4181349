// What of CAF's protocol passes: what nodes of ours say, byte by byte, and nothing else.
#include "gate/basp_filter.hpp"

#include <string>
#include <vector>

#include <speedo/base/limits.hpp>

#include "support/catch.hpp"

#include "basp_bytes.hpp"

namespace speedo {
namespace {

using test::BaspHeader;

const std::vector<std::string> kAllowed = {"speedo::HelloMessage", "speedo::BeatMessage"};

BaspFilter filter_of(bool from_server = false) {
  BaspFilter filter({.from_server = from_server,
                     .application = test::kCafApplication,
                     .messages = kAllowed});
  filter.set_own_node(test::basp_node('m'));
  return filter;
}

// What passes after a handshake; the error's words if it does not.
std::string passed(const std::string& bytes) {
  BaspFilter filter = filter_of();
  std::string out;
  REQUIRE(filter.pass(test::client_handshake('w'), out));
  out.clear();
  const auto done = filter.pass(bytes, out);
  return done ? out : "error: " + done.error().message;
}
bool is_cut(const std::string& bytes) {
  const std::string out = passed(bytes);
  CAPTURE(out);
  return out.starts_with("error: ");
}

std::string conversation() {
  return test::client_handshake('w') + test::monitor_note('w', 'm') + test::hello() +
         test::heartbeat() + test::direct_message("@<>+speedo::BeatMessage") +
         test::down_note('w', 'm', "\x03@<>") +
         test::down_note('w', 'm', std::string("\x08@<>+@str\x05") + "words");
}

}  // namespace

TEST_CASE("what our nodes say passes as it is, in pieces of any size") {
  const std::string all = conversation();
  for (std::size_t piece = 1; piece <= all.size(); ++piece) {
    BaspFilter filter = filter_of();
    std::string out;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      REQUIRE(filter.pass(std::string_view(all).substr(at, piece), out));
    }
    REQUIRE(out == all);
  }
}

TEST_CASE("nothing of a message passes before all of it is there") {
  BaspFilter filter = filter_of();
  std::string out;
  std::string bytes = test::client_handshake('w') + test::hello();
  bytes.pop_back();
  REQUIRE(filter.pass(bytes, out));
  CHECK(out == test::client_handshake('w'));
}

TEST_CASE("a handshake that CAF sends again is left out; one of another node is cut") {
  CHECK(passed(test::client_handshake('w') + test::hello()) == test::hello());
  const std::string selects = test::basp({.operation = 1, .flags = 2}, test::basp_node('w'));
  CHECK(passed(selects + test::hello()) == test::hello());
  CHECK(is_cut(test::client_handshake('x')));
  BaspFilter filter = filter_of(true);
  std::string out;
  const std::string greeting = test::server_handshake('m', test::kCafApplication);
  REQUIRE(filter.pass(greeting, out));
  CHECK_FALSE(filter.pass(greeting, out));
}

TEST_CASE("CAF's question for its spawn server and its note of surprise are left out") {
  const std::string question =
      test::basp({.operation = 2, .flags = 1, .data = test::kBaspAsync, .source = 7, .target = 99},
                 test::basp_content("@<>+@atom+@atom+@str", "rest"));
  CHECK(passed(question + test::hello()) == test::hello());
  const std::string surprise("\x01\x00\x00\x00\xfe\x3e\xe3\x9a\xb2\x00\x00\x03@<>", 15);
  CHECK(passed(test::direct_message("@<>+@error", surprise) + test::hello()) == test::hello());
  CHECK(is_cut(test::direct_message("@<>+@error", "\x02" + surprise.substr(1))));
}

TEST_CASE("what a peer may not say cuts it") {
  for (const char* type : {"@<>+@exit_msg", "@<>+@down_msg", "@<>+@error", "@<>+@atom+@str",
                           "@<>+speedo::TrainMessage", "@<>+speedo::HelloMessage+@str", "@<>",
                           "speedo::HelloMessage", "@<>+speedo::HelloMessag"}) {
    CAPTURE(type);
    CHECK(is_cut(test::direct_message(type)));
  }
  const std::string content = test::basp_content("@<>+speedo::HelloMessage");
  CHECK(is_cut(test::basp({.operation = 3, .data = test::kBaspAsync}, content)));  // routed
  CHECK(is_cut(test::basp({.operation = 7}, content)));
  CHECK(is_cut(test::basp({.operation = 255}, "")));
  CHECK(is_cut(test::server_handshake('x', test::kCafApplication)));
  CHECK(is_cut(test::basp({.operation = 6}, "x")));
  CHECK(is_cut(test::basp({.operation = 2, .data = test::kBaspAsync}, "")));
}

TEST_CASE("a peer has as many actors as a process can have, and no more") {
  BaspFilter filter = filter_of();
  std::string out;
  const auto says = [&](std::uint64_t source) {
    out.clear();
    return filter.pass(test::basp({.operation = 2, .data = test::kBaspAsync, .source = source,
                                   .target = 6},
                                  test::basp_content("@<>+speedo::HelloMessage")),
                       out);
  };
  REQUIRE(filter.pass(test::client_handshake('w'), out));
  for (std::uint64_t source = 1; source <= BaspFilter::kActorsMax; ++source) {
    REQUIRE(says(source));
  }
  REQUIRE(says(1));
  CHECK_FALSE(out.empty());
  CHECK_FALSE(says(BaspFilter::kActorsMax + 1));
  CHECK(out.empty());
}

TEST_CASE("every field of a message that is wrong cuts it") {
  const std::string content = test::basp_content("@<>+speedo::HelloMessage");
  for (const std::uint8_t flags : {1, 2, 4, 128, 255}) {
    CHECK(is_cut(test::basp({.operation = 2, .flags = flags, .data = test::kBaspAsync}, content)));
  }
  for (const std::uint64_t data : {std::uint64_t{0}, std::uint64_t{1}, test::kBaspAsync + 1,
                                   std::uint64_t{1} << 63U}) {
    CHECK(is_cut(test::basp({.operation = 2, .data = data}, content)));  // a request, an answer
  }
  CHECK(is_cut(test::basp({.operation = 2, .data = test::kBaspAsync, .source = 8}, content)));
  for (const test::BaspHeader& header : {test::BaspHeader{.operation = 6, .data = 1},
                                         test::BaspHeader{.operation = 6, .source = 8},
                                         test::BaspHeader{.operation = 6, .target = 6}}) {
    CHECK(is_cut(test::basp(header, "")));
  }
  const std::string nodes = test::basp_node('w') + test::basp_node('m');
  const std::string ended = test::down_note('w', 'm', "\x03@<>").substr(BaspFilter::kHeaderBytes);
  CHECK(is_cut(test::basp({.operation = 4, .data = 1, .target = 7}, nodes)));
  CHECK(is_cut(test::basp({.operation = 5, .data = 1, .source = 8}, ended)));
  CHECK(is_cut(test::basp({.operation = 5, .source = 8, .target = 6}, ended)));
  CHECK(is_cut(test::basp({.operation = 5}, ended)));
  for (const std::size_t padding : {1, 2}) {
    std::string bytes = test::hello();
    bytes[padding] = '\1';
    CHECK(is_cut(bytes));
  }
  for (const std::size_t place : {0, 1, 2}) {  // forwarded by, number of the type
    std::string bytes = test::hello();
    bytes[BaspFilter::kHeaderBytes + place] = '\1';
    CHECK(is_cut(bytes));
  }
  for (std::size_t size = 1; size < 28; ++size) {
    CHECK(is_cut(test::basp({.operation = 2, .data = test::kBaspAsync}, content.substr(0, size))));
  }
}

TEST_CASE("a length is refused before anything of it has come") {
  BaspFilter filter = filter_of();
  std::string out;
  REQUIRE(filter.pass(test::client_handshake('w'), out));
  const std::string most = test::direct_message(
      "@<>+speedo::HelloMessage", std::string(kMessageBytesMax - 28, 'x'));
  CHECK(filter.pass(most, out));
  const std::string more = test::direct_message(
      "@<>+speedo::HelloMessage", std::string(kMessageBytesMax - 27, 'x'));
  CHECK_FALSE(filter.pass(more.substr(0, BaspFilter::kHeaderBytes), out));
  std::string endless = test::hello();
  for (int i = 4; i < 8; ++i) endless[static_cast<std::size_t>(i)] = '\xff';
  CHECK(is_cut(endless.substr(0, BaspFilter::kHeaderBytes)));
}

TEST_CASE("a peer speaks for its own node, and to ours") {
  CHECK(is_cut(test::monitor_note('x', 'm')));
  CHECK(is_cut(test::monitor_note('w', 'x')));
  CHECK(is_cut(test::down_note('x', 'm', "\x03@<>")));
  CHECK(is_cut(test::down_note('w', 'm', "\x0c@<>+@message")));
  CHECK(is_cut(test::down_note('w', 'm', std::string("\x08@<>+@str\x06") + "words")));
  CHECK(is_cut(test::down_note('w', 'm', "\x08@<>+@str\xff\xff\xff\xff\xff")));
  CHECK(is_cut(test::basp({.operation = 4}, test::basp_node('w') + test::basp_node('m') + "x")));
  BaspFilter unknown(
      {.from_server = false, .application = test::kCafApplication, .messages = kAllowed});
  std::string out;
  REQUIRE(unknown.pass(test::client_handshake('w'), out));
  CHECK_FALSE(unknown.pass(test::monitor_note('w', 'm'), out));
}

TEST_CASE("a handshake comes first, of our application, from the side that is to begin") {
  const auto first = [](bool from_server, const std::string& bytes) {
    BaspFilter filter = filter_of(from_server);
    std::string out;
    return filter.pass(bytes, out).has_value() && out == bytes;
  };
  CHECK(first(true, test::server_handshake('m', test::kCafApplication)));
  CHECK(first(false, test::client_handshake('w')));
  CHECK_FALSE(first(true, test::client_handshake('m')));
  CHECK_FALSE(first(false, test::server_handshake('w', test::kCafApplication)));
  CHECK_FALSE(first(false, test::hello()));
  CHECK_FALSE(first(false, test::heartbeat()));
  CHECK_FALSE(first(true, test::server_handshake('m', "speedo/7")));
  CHECK_FALSE(first(true, test::server_handshake('m', "")));
  CHECK_FALSE(first(false, test::basp({.operation = 1}, test::basp_node('w') + "x")));
  CHECK_FALSE(first(false, test::basp({.operation = 1, .flags = 2}, test::basp_node('w'))));
  CHECK_FALSE(first(false, test::basp({.operation = 1}, std::string(32, 'x'))));
  const std::string good = test::server_handshake('m', test::kCafApplication);
  for (std::size_t place = 8; place < 16; ++place) {
    std::string other_version = good;
    other_version[place] = static_cast<char>(other_version[place] ^ 1);
    CHECK_FALSE(first(true, other_version));
  }
}

TEST_CASE("every header byte changed is cut, waited for or harmless, and nothing is made up") {
  for (std::size_t place = 0; place < BaspFilter::kHeaderBytes; ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = test::hello();
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << bit));
      const std::string out = passed(bytes);
      CAPTURE(place, bit);
      const bool same_or_less = bytes.starts_with(out) || out.starts_with("error: ");
      CHECK(same_or_less);
      if (place < 4 || (place >= 8 && place < 16)) CHECK(out.starts_with("error: "));
    }
  }
}

}  // namespace speedo
