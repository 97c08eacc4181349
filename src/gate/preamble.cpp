#include "gate/preamble.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "gate/key_material.hpp"

namespace speedo {
namespace {

constexpr std::string_view kMagic = "SpeeDO\r\n";
constexpr std::size_t kModePlace = 10, kRolePlace = 11, kProtocolPlace = 12, kNoncePlace = 16,
                      kKeyPlace = 32, kProofPlace = 40;
constexpr std::size_t kProofBytes = kPreambleBytes - kProofPlace;

void put(std::string& bytes, std::uint32_t number, int size) {
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    bytes += static_cast<char>(number >> shift & 0xFFU);
  }
}

std::uint32_t number_at(std::string_view bytes, std::size_t place, std::size_t size) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < size; ++i) {
    number = number << 8U | static_cast<unsigned char>(bytes[place + i]);
  }
  return number;
}

std::string head(std::uint16_t version, std::uint8_t mode, std::uint8_t role,
                 std::uint32_t protocol, std::string_view nonce) {
  SPEEDO_ASSERT(nonce.size() == kNonceBytes);
  std::string bytes(kMagic);
  put(bytes, version, 2);
  put(bytes, mode, 1);
  put(bytes, role, 1);
  put(bytes, protocol, 4);
  bytes += nonce;
  return bytes;
}

std::string proof_of(std::string_view head, std::string_view greeting, const PreambleKey& key) {
  return hmac_sha256(key.proof.reveal(), std::string(greeting).append(head)).substr(0, kProofBytes);
}

}  // namespace

std::string encode(const Greeting& greeting) {
  return head(greeting.version, static_cast<std::uint8_t>(greeting.mode), 0, greeting.protocol,
              greeting.nonce);
}

std::optional<Greeting> decode_greeting(std::string_view bytes) {
  SPEEDO_ASSERT(bytes.size() == kGreetingBytes);
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  return Greeting{.version = static_cast<std::uint16_t>(number_at(bytes, kMagic.size(), 2)),
                  .mode = static_cast<GateMode>(bytes[kModePlace]),
                  .protocol = number_at(bytes, kProtocolPlace, 4),
                  .nonce = std::string(bytes.substr(kNoncePlace, kNonceBytes))};
}

PreambleKey preamble_key(std::string_view secret) {
  std::string proof = hkdf_sha256(secret, "", "speedo gate 1 preamble", kHmacBytes);
  PreambleKey key{.id = hkdf_sha256(secret, "", "speedo gate 1 key id", kKeyIdBytes),
                  .proof = Secret(proof)};
  wipe(proof);
  return key;
}

std::string encode(const Preamble& preamble, std::string_view greeting, const PreambleKey& key) {
  std::string bytes = head(preamble.version, static_cast<std::uint8_t>(preamble.mode),
                           static_cast<std::uint8_t>(preamble.role), preamble.protocol,
                           preamble.nonce);
  SPEEDO_ASSERT(key.id.size() == kKeyIdBytes);
  bytes += key.id;
  bytes += proof_of(bytes, greeting, key);
  return bytes;
}

PreambleVerdict judge_preamble(std::string_view bytes, const Greeting& wanted,
                               std::string_view greeting, const std::vector<PreambleKey>& keys) {
  SPEEDO_ASSERT(bytes.size() == kPreambleBytes);
  PreambleVerdict verdict;
  if (!bytes.starts_with(kMagic)) return verdict;
  verdict.is_preamble = true;
  Preamble& said = verdict.preamble;
  said.version = static_cast<std::uint16_t>(number_at(bytes, kMagic.size(), 2));
  said.mode = static_cast<GateMode>(bytes[kModePlace]);
  said.role = static_cast<GateRole>(bytes[kRolePlace]);
  said.protocol = number_at(bytes, kProtocolPlace, 4);
  said.nonce = bytes.substr(kNoncePlace, kNonceBytes);
  said.key_id = bytes.substr(kKeyPlace, kKeyIdBytes);
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const PreambleKey& each) {
    return equal_in_constant_time(each.id, said.key_id);
  });
  verdict.key = static_cast<std::size_t>(key - keys.begin());
  if (said.version != wanted.version) {
    verdict.refusal = Refusal::kGateVersion;
  } else if (said.protocol != wanted.protocol) {
    verdict.refusal = Refusal::kProtocol;
  } else if (said.mode != wanted.mode) {
    verdict.refusal = Refusal::kMode;
  } else if (key == keys.end()) {
    verdict.refusal = Refusal::kUnknownKey;
  } else if (!equal_in_constant_time(bytes.substr(kProofPlace),
                                     proof_of(bytes.substr(0, kProofPlace), greeting, *key))) {
    verdict.refusal = Refusal::kWrongProof;
  } else if (said.role != GateRole::kWorker && said.role != GateRole::kWatcher) {
    verdict.refusal = Refusal::kRole;
  }
  return verdict;
}

}  // namespace speedo
