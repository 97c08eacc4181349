#include "gate/tls_context.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "base/log.hpp"
#include "base/secret_file_mode.hpp"
#include "base/shown_text.hpp"
#include "gate/certificate.hpp"
#include "gate/key_material.hpp"
#include "gate/pem_text.hpp"

namespace speedo {
namespace {

constexpr const char* kCipherSuite = "TLS_AES_256_GCM_SHA384";
constexpr unsigned char kSessionContext[] = {'g', 'a', 't', 'e'};
// Some hundred bytes for each key, connection that begins, and thread.
constexpr std::size_t kKeyMemoryBytes = std::size_t{1} << 20U;
constexpr std::size_t kKeyMemoryGrain = 32;
constexpr const char* kGroups = "X25519:P-256";
// Of servers that others have made.
constexpr const char* kCallerSuites =
    "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
constexpr const char* kCallerCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kCallerGroups = "X25519:P-256:P-384";

// For want of memory it ends as a `new` that fails does, in the program's own words if it has some.
Error tls_fault(const std::string& what) {
  const unsigned long last = ::ERR_peek_last_error();
  const bool lacks_memory = ERR_GET_REASON(last) == ERR_R_MALLOC_FAILURE;
  if (const auto handler = std::get_new_handler(); lacks_memory && handler != nullptr) handler();
  const char* const reason = ::ERR_reason_error_string(last);
  ::ERR_clear_error();
  return {lacks_memory ? ErrorCode::kFull : ErrorCode::kInternal,
          fmt::format("{}: {}", what, reason ? reason : "unknown reason")};
}

Result<TlsContext> bare_context(GateSide side) {
  TlsContext context(
      ::SSL_CTX_new(side == GateSide::kListens ? ::TLS_server_method() : ::TLS_client_method()),
      ::SSL_CTX_free);
  const bool made = context != nullptr &&
                    ::SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    ::SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                    ::SSL_CTX_set_ciphersuites(context.get(), kCipherSuite) == 1 &&
                    ::SSL_CTX_set1_groups_list(context.get(), kGroups) == 1 &&
                    ::SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  if (!made) return tls_fault("TLS cannot be set up");
  ::SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  // Nothing is sent but what is protected and checked.
  ::SSL_CTX_clear_options(context.get(), SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  // An external key counts as a session, and who listens has a name for what sessions are for.
  if (side == GateSide::kListens) {
    ::SSL_CTX_set_session_id_context(context.get(), kSessionContext, sizeof(kSessionContext));
  }
  ::SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  return context;
}

Error certificate_file_error(const std::filesystem::path& path, const char* what) {
  const int reason = errno;
  ::ERR_clear_error();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 && errno == ENOENT) {
    return {ErrorCode::kNotFound, fmt::format("the {} file '{}' is missing", what, path.string())};
  }
  const bool refused = reason == EACCES || reason == EPERM;
  return {refused ? ErrorCode::kRefused : ErrorCode::kConfig,
          fmt::format("'{}' is no {} that can be read (PEM)", path.string(), what)};
}

Result<void> check_key_mode(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return certificate_file_error(path, "private key");
  if (!is_open_to_others(status)) return {};
  return Error{ErrorCode::kRefused,
               fmt::format("the private key file '{}' can be read or changed by other users: "
                           "chmod 600 {}",
                           path.string(), path.string())};
}

// Adds what one block of the authorities' file holds; false if it is none of what belongs there.
bool add_block(X509_STORE* store, const PemBlock& block) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block.bytes.data());
  const auto size = static_cast<long>(block.bytes.size());
  if (block.kind == PEM_STRING_X509_CRL) {
    const std::unique_ptr<X509_CRL, decltype(&::X509_CRL_free)> list(
        ::d2i_X509_CRL(nullptr, &bytes, size), ::X509_CRL_free);
    return list && ::X509_STORE_add_crl(store, list.get()) == 1;
  }
  const bool has_trust = block.kind == PEM_STRING_X509_TRUSTED;
  if (!has_trust && block.kind != PEM_STRING_X509 && block.kind != PEM_STRING_X509_OLD) {
    return false;
  }
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(
      has_trust ? ::d2i_X509_AUX(nullptr, &bytes, size) : ::d2i_X509(nullptr, &bytes, size),
      ::X509_free);
  return certificate && ::X509_STORE_add_cert(store, certificate.get()) == 1;
}

// Lists of revoked certificates lie in the file of the authorities, if there are any. Whether there
// are must not be in doubt: a list that is damaged would let in whom it names.
Result<void> use_authority(SSL_CTX* context, const CertificateFiles& files) {
  const std::string path = files.authority.string();
  const auto unfit = [&](const std::string& what) {
    ::ERR_clear_error();
    return Error{ErrorCode::kConfig,
                 fmt::format("the file of authorities '{}' {}", path, what)};
  };
  const auto text = read_pem_file(files.authority);
  if (!text) return Error{text.error().code, "the file of authorities " + text.error().message};
  const auto blocks = pem_blocks(*text);
  if (!blocks) {
    return unfit("is damaged, and who was revoked cannot be told, " + blocks.error().message +
                 ": copy it anew");
  }
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
  std::size_t lists = 0;
  for (const PemBlock& block : *blocks) {
    if (!add_block(store, block)) {
      return unfit(fmt::format("holds something ({}) that is neither a certificate nor a list of "
                               "revoked ones: copy it anew, or take that out",
                               shown_text(block.kind)));
    }
    lists += block.kind == PEM_STRING_X509_CRL ? 1U : 0U;
  }
  if (lists == blocks->size()) return unfit("holds no certificate (PEM)");
  if (lists > 0) ::X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  return {};
}

// In this memory, which core dumps leave out, OpenSSL keeps the numbers of private keys, of those
// that it draws for a connection and of its random numbers, if there is any.
void keep_keys_apart() {
  static std::once_flag made;
  std::call_once(made, [] {
    const int done = ::CRYPTO_secure_malloc_init(kKeyMemoryBytes, kKeyMemoryGrain);
    if (done == 0) SPEEDO_WARN("TLS: no memory apart for private keys; a core dump shows them");
  });
}

Result<void> use_own(SSL_CTX* context, const CertificateFiles& files) {
  keep_keys_apart();
  SPEEDO_TRY(check_key_mode(files.key));
  // A key that is encrypted cannot be used: nobody may be there who could be asked for the words.
  ::SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  if (::SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return certificate_file_error(files.certificate, "certificate");
  }
  if (::SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return certificate_file_error(files.key, "private key of the certificate");
  }
  return {};
}

}  // namespace

Result<TlsContext> token_context(GateSide side) {
  SPEEDO_ASSIGN(TlsContext context, bare_context(side));
  // There is no certificate, and no authority: one who has not the key cannot show anything else.
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

Result<TlsContext> certificate_context(GateSide side, const CertificateFiles& files) {
  SPEEDO_ASSIGN(TlsContext context, bare_context(side));
  SSL_CTX* const raw = context.get();
  SPEEDO_TRY(use_own(raw, files));
  SPEEDO_TRY(use_authority(raw, files));
  ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

Result<TlsContext> caller_context(const CertificateFiles& files) {
  SPEEDO_ASSIGN(TlsContext context, bare_context(GateSide::kCalls));
  SSL_CTX* const raw = context.get();
  const bool made = ::SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1 &&
                    ::SSL_CTX_set_ciphersuites(raw, kCallerSuites) == 1 &&
                    ::SSL_CTX_set_cipher_list(raw, kCallerCiphers) == 1 &&
                    ::SSL_CTX_set1_groups_list(raw, kCallerGroups) == 1;
  if (!made) return tls_fault("TLS cannot be set up");
  if (!files.certificate.empty()) SPEEDO_TRY(use_own(raw, files));
  if (!files.authority.empty()) {
    SPEEDO_TRY(use_authority(raw, files));
  } else if (::SSL_CTX_set_default_verify_paths(raw) != 1) {
    return tls_fault("the system's authorities cannot be read");
  }
  ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  return context;
}

Result<std::vector<std::string>> authority_marks(const CertificateFiles& files, GateRole role) {
  SPEEDO_ASSIGN(const std::vector<Certificate> own, read_certificates(files.certificate));
  SPEEDO_ASSIGN(const std::vector<Certificate> authorities, read_certificates(files.authority));
  SPEEDO_TRY(own.front().check_fit(role, files.certificate.string()));
  std::vector<std::string> marks;
  bool known = false;
  for (const Certificate& authority : authorities) {
    std::string mark = sha256(authority.bytes());
    if (!known && own.back().is_issued_by(authority)) {
      marks.insert(marks.begin(), std::move(mark));
      known = true;
    } else {
      marks.push_back(std::move(mark));
    }
  }
  if (known) return marks;
  return Error{ErrorCode::kRefused,
               fmt::format("the certificate '{}' is of another authority than those in '{}'",
                           files.certificate.string(), files.authority.string())};
}

}  // namespace speedo
