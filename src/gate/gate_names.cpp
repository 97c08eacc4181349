#include "gate/gate_names.hpp"

namespace speedo {

std::string_view name_of(GateRole role) {
  switch (role) {
    case GateRole::kMaster:
      return "master";
    case GateRole::kWorker:
      return "worker";
    case GateRole::kWatcher:
      return "watcher";
  }
  return "stranger";
}

std::string_view name_of(GateMode mode) {
  switch (mode) {
    case GateMode::kOpen:
      return "no protection";
    case GateMode::kToken:
      return "a token";
    case GateMode::kCertificates:
      return "certificates";
  }
  return "something unknown";
}

std::string_view name_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "nothing wrong";
    case Refusal::kGateVersion:
      return "another version of the gate";
    case Refusal::kProtocol:
      return "another version of SpeeDO";
    case Refusal::kMode:
      return "another way to prove who it is";
    case Refusal::kUnknownKey:
      return "another token or authority";
    case Refusal::kWrongProof:
      return "a wrong proof";
    case Refusal::kRole:
      return "a role that may not come in";
    case Refusal::kCertificate:
      return "a certificate that is not valid here";
    case Refusal::kRevoked:
      return "a revoked certificate";
  }
  return "an unknown reason";
}

Error error_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::kGateVersion:
    case Refusal::kProtocol:
      return {ErrorCode::kMismatch,
              "another version of SpeeDO; use the same version for master and workers"};
    case Refusal::kMode:
      return {ErrorCode::kRefused,
              "it wants another proof of who comes in: give --token-file, or --tls-cert, --tls-key "
              "and --tls-ca, as the master has them"};
    case Refusal::kUnknownKey:
    case Refusal::kWrongProof:
      return {ErrorCode::kRefused,
              "it has another token or certificate authority; give the same --token-file or "
              "--tls-ca to master and workers"};
    case Refusal::kRole:
      return {ErrorCode::kRefused,
              "it does not let this role in; a certificate is for the role that it was issued for"};
    case Refusal::kRevoked:
      return {ErrorCode::kRefused, "the certificate was revoked; issue another one"};
    case Refusal::kNone:
    case Refusal::kCertificate:
      break;
  }
  return {ErrorCode::kRefused,
          "it does not accept the certificate: is it of its authority, of the right role, and not "
          "expired?"};
}

}  // namespace speedo
