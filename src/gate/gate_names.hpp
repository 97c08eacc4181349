#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// What a peer of a gate is. The numbers travel.
enum class GateRole : std::uint8_t {
  kMaster = 1,
  kWorker = 2,
  kWatcher = 3,  // asks how a job stands, and nothing else
};

// What protects a gate's connections. The numbers travel.
enum class GateMode : std::uint8_t {
  kOpen = 0,          // nothing: whoever reaches the port is let in, and everybody can read along
  kToken = 1,         // TLS 1.3 under a token that both sides have
  kCertificates = 2,  // TLS 1.3 with certificates of both sides
};

// Why a gate does not let a peer in. The numbers travel, as one byte in the place of kAdmitted: TLS
// has none below 20.
enum class Refusal : std::uint8_t {
  kNone = 0,
  kGateVersion = 2,
  kProtocol = 3,
  kMode = 4,
  kUnknownKey = 5,
  kWrongProof = 6,
  kRole = 7,
  kCertificate = 8,
  kRevoked = 9,
};
inline constexpr std::uint8_t kAdmittedByte = 1;
inline constexpr std::uint8_t kRefusalByteMax = 15;

std::string_view name_of(GateRole role);
std::string_view name_of(GateMode mode);

// For the log of the side that refuses: "another token".
std::string_view name_of(Refusal refusal);
// For the side that is refused, with the remedy. kMismatch or kRefused.
Error error_of(Refusal refusal);

}  // namespace speedo
