#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/base/secret.hpp>

#include "gate/gate_names.hpp"

namespace speedo {

// What two gates say to each other before anything else is read: two headers of fixed size, numbers
// with their highest byte first.
//
// Greeting, 32 bytes, from who listens:
//   0 magic "SpeeDO\r\n", 8 gate's version (2), 10 mode, 11 zero, 12 protocol (4), 16 nonce (16)
// Preamble, 64 bytes, the answer:
//   0 magic, 8 gate's version (2), 10 mode, 11 role, 12 protocol (4), 16 nonce (16),
//   32 key id (8), 40 proof (24): of HMAC-SHA256 over greeting and bytes 0 to 40 under the key
//
// A preamble proves that its sender has the key now: the greeting's nonce is in the proof.

inline constexpr std::size_t kGreetingBytes = 32;
inline constexpr std::size_t kPreambleBytes = 64;
inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kKeyIdBytes = 8;
inline constexpr std::uint16_t kGateVersion = 1;

struct Greeting {
  std::uint16_t version = kGateVersion;
  GateMode mode = GateMode::kOpen;
  std::uint32_t protocol = 0;  // of what is spoken behind the gate
  std::string nonce;           // kNonceBytes
};
std::string encode(const Greeting& greeting);
// Nothing if those are no greeting of any version. Requires: kGreetingBytes.
std::optional<Greeting> decode_greeting(std::string_view bytes);

struct Preamble {
  std::uint16_t version = kGateVersion;
  GateMode mode = GateMode::kOpen;
  GateRole role = GateRole::kWorker;
  std::uint32_t protocol = 0;
  std::string nonce;   // kNonceBytes
  std::string key_id;  // kKeyIdBytes
};

// A key of the gates' mode: a token, or what stands for a certificate authority.
struct PreambleKey {
  std::string id;     // kKeyIdBytes
  Secret proof;       // under which proofs are made
};
PreambleKey preamble_key(std::string_view secret);

// `greeting`: its bytes, as they came.
std::string encode(const Preamble& preamble, std::string_view greeting, const PreambleKey& key);

struct PreambleVerdict {
  bool is_preamble = false;  // else somebody who speaks another protocol
  Refusal refusal = Refusal::kNone;
  Preamble preamble;
  std::size_t key = 0;  // which of the keys
};
// What `wanted` says of version, mode and protocol is what a preamble must say. Requires:
// kPreambleBytes.
PreambleVerdict judge_preamble(std::string_view bytes, const Greeting& wanted,
                               std::string_view greeting, const std::vector<PreambleKey>& keys);

}  // namespace speedo
