#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "gate/gate_names.hpp"

struct ssl_ctx_st;  // SSL_CTX

namespace speedo {

enum class GateSide { kListens, kCalls };

// OpenSSL's settings of one side: TLS 1.3 alone, one cipher suite, (EC)DHE always, no tickets, no
// early data.
using TlsContext = std::shared_ptr<ssl_ctx_st>;

// For external keys, see TlsChannel: without certificates, so that nobody without the key gets on.
// Error: kInternal.
Result<TlsContext> token_context(GateSide side);

struct CertificateFiles {
  std::filesystem::path certificate;  // of this side, PEM, with those between it and the authority
  std::filesystem::path key;          // PEM, for this user alone
  std::filesystem::path authority;    // PEM: certificates of authorities, and lists of revoked ones
};

// Both sides show certificates, of one of the authorities and not revoked. Errors: kNotFound,
// kConfig, kRefused for a key that others may read.
Result<TlsContext> certificate_context(GateSide side, const CertificateFiles& files);

// For one that calls a server that is no gate: TLS 1.2 or 1.3. The server must show a certificate
// of one of the authorities, of the system's where no file is named. Its own certificate and key
// only where they are named. Errors: as above.
Result<TlsContext> caller_context(const CertificateFiles& files);

// A text for each authority of the file that both sides derive alike, that of our own certificate
// first. Errors: as above; kRefused if our certificate is of none of them, expired, or is not for
// `role`, each with what is wrong.
Result<std::vector<std::string>> authority_marks(const CertificateFiles& files, GateRole role);

}  // namespace speedo
