#include "gate/preamble.hpp"

#include <string>

#include "support/catch.hpp"

namespace speedo {
namespace {

const std::string kSecret(43, 't');

struct Said {
  Greeting greeting{.version = kGateVersion,
                    .mode = GateMode::kToken,
                    .protocol = 8,
                    .nonce = std::string(kNonceBytes, 'g')};
  PreambleKey key = preamble_key(kSecret);
  Preamble preamble{.version = kGateVersion,
                    .mode = GateMode::kToken,
                    .role = GateRole::kWorker,
                    .protocol = 8,
                    .nonce = std::string(kNonceBytes, 'p'),
                    .key_id = key.id};

  std::string bytes() const { return encode(preamble, encode(greeting), key); }
  PreambleVerdict judged(const std::string& said) const {
    return judge_preamble(said, greeting, encode(greeting),
                          {preamble_key(std::string(43, 'o')), preamble_key(kSecret)});
  }
};

Secret changed(const Secret& key) {
  std::string text(key.reveal());
  text[0] = static_cast<char>(text[0] ^ 1);
  return Secret(text);
}

}  // namespace

TEST_CASE("a greeting says what it was made of") {
  const Said said;
  const std::string bytes = encode(said.greeting);
  REQUIRE(bytes.size() == kGreetingBytes);
  const auto greeting = decode_greeting(bytes);
  REQUIRE(greeting);
  CHECK(greeting->version == kGateVersion);
  CHECK(greeting->mode == GateMode::kToken);
  CHECK(greeting->protocol == 8);
  CHECK(greeting->nonce == said.greeting.nonce);
  CHECK_FALSE(decode_greeting(std::string(kGreetingBytes, '\0')));
  CHECK_FALSE(decode_greeting("HTTP/1.1 400 Bad Request\r\n\r\nmore"));
}

TEST_CASE("a preamble under one of the keys is taken, and says which") {
  const Said said;
  REQUIRE(said.bytes().size() == kPreambleBytes);
  const PreambleVerdict verdict = said.judged(said.bytes());
  CHECK(verdict.is_preamble);
  CHECK(verdict.refusal == Refusal::kNone);
  CHECK(verdict.preamble.role == GateRole::kWorker);
  CHECK(verdict.key == 1);
}

TEST_CASE("every bit of a preamble counts") {
  const Said said;
  for (std::size_t place = 0; place < kPreambleBytes; ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = said.bytes();
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << bit));
      CAPTURE(place, bit);
      const PreambleVerdict verdict = said.judged(bytes);
      CHECK((!verdict.is_preamble || verdict.refusal != Refusal::kNone));
    }
  }
}

TEST_CASE("every field that is wrong has its refusal") {
  const auto refusal = [](auto change) {
    Said said;
    change(said);
    const Said wanted;
    return wanted.judged(said.bytes()).refusal;
  };
  CHECK(refusal([](Said&) {}) == Refusal::kNone);
  CHECK(refusal([](Said& said) { said.preamble.version = 2; }) == Refusal::kGateVersion);
  CHECK(refusal([](Said& said) { said.preamble.protocol = 7; }) == Refusal::kProtocol);
  CHECK(refusal([](Said& said) { said.preamble.mode = GateMode::kOpen; }) == Refusal::kMode);
  CHECK(refusal([](Said& said) { said.key = preamble_key(std::string(43, 'x')); }) ==
        Refusal::kUnknownKey);
  CHECK(refusal([](Said& said) { said.key.proof = changed(said.key.proof); }) ==
        Refusal::kWrongProof);
  CHECK(refusal([](Said& said) { said.preamble.role = GateRole::kMaster; }) == Refusal::kRole);
  CHECK(refusal([](Said& said) { said.preamble.role = static_cast<GateRole>(77); }) ==
        Refusal::kRole);
  // One that was recorded, and sent again to another greeting.
  CHECK(refusal([](Said& said) { said.greeting.nonce = std::string(kNonceBytes, 'r'); }) ==
        Refusal::kWrongProof);
}

}  // namespace speedo
