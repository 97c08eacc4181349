#include "gate/tls_channel.hpp"

#include <optional>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <speedo/base/assert.hpp>

#include "gate/certificate.hpp"
#include "gate/key_material.hpp"

namespace speedo {
namespace {

constexpr std::string_view kIdentity = "speedo";
constexpr unsigned char kSuiteBytes[] = {0x13, 0x02};  // TLS_AES_256_GCM_SHA384
constexpr std::size_t kPieceBytes = 16384;

// A session as if it had been made before, with the external key as its secret.
SSL_SESSION* external_session(SSL* ssl, const std::string& key) {
  SSL_SESSION* const session = ::SSL_SESSION_new();
  const SSL_CIPHER* const cipher = ::SSL_CIPHER_find(ssl, kSuiteBytes);
  const bool made =
      session != nullptr && cipher != nullptr &&
      ::SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                    key.size()) == 1 &&
      ::SSL_SESSION_set_cipher(session, cipher) == 1 &&
      ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  ::SSL_SESSION_free(session);
  return nullptr;
}

int use_external_key(SSL* ssl, const EVP_MD*, const unsigned char** identity,
                     std::size_t* identity_bytes, SSL_SESSION** session) {
  const auto& key = *static_cast<const std::string*>(SSL_get_app_data(ssl));
  *session = external_session(ssl, key);
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *identity_bytes = kIdentity.size();
  return *session != nullptr ? 1 : 0;
}

int find_external_key(SSL* ssl, const unsigned char* identity, std::size_t identity_bytes,
                      SSL_SESSION** session) {
  const std::string_view named(reinterpret_cast<const char*>(identity), identity_bytes);
  *session = nullptr;
  if (named != kIdentity) return 1;  // goes on without, and fails for want of a certificate
  *session = external_session(ssl, *static_cast<const std::string*>(SSL_get_app_data(ssl)));
  return *session != nullptr ? 1 : 0;
}

// OpenSSL asks for it before each call whose error is looked at. Forgetting nothing takes a while.
void forget_errors() {
  if (::ERR_peek_error() != 0) ::ERR_clear_error();
}

// Alerts by which the peer says that it does not accept us.
bool is_refusing_alert(int reason) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

class TlsChannel final : public Channel {
 public:
  TlsChannel(SSL* ssl, TlsTerms terms) : ssl_(ssl, ::SSL_free), terms_(std::move(terms)) {
    in_ = ::BIO_new(::BIO_s_mem());
    out_ = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(ssl, in_, out_);
    SSL_set_app_data(ssl, &terms_.external_key);
  }
  ~TlsChannel() override { wipe(terms_.external_key); }

  Result<void> begin(std::string& out) override { return shake(out); }
  Result<void> receive(std::string_view network, std::string& plain, std::string& out) override;
  Result<void> send(std::string_view plain, std::string& out) override;
  void end(std::string& out) override;
  bool is_ready() const override { return ready_ && !failed_; }
  ChannelPeer peer() const override;

 private:
  Result<void> shake(std::string& out);
  Error fail(std::string& out);
  void drain(std::string& out);

  const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl_;
  TlsTerms terms_;
  BIO* in_ = nullptr;   // owned by ssl_, as the next
  BIO* out_ = nullptr;
  bool ready_ = false, failed_ = false;
  bool over_ = false;  // the peer has said that nothing follows
};

void TlsChannel::drain(std::string& out) {
  const int size = BIO_pending(out_);
  if (size <= 0) return;
  const std::size_t before = out.size();
  out.resize(before + static_cast<std::size_t>(size));
  // Not BIO_reset(), which sets all that the buffer ever held to 0.
  const int taken = ::BIO_read(out_, out.data() + before, size);
  SPEEDO_ASSERT(taken == size);
}

// Of the error that OpenSSL has noted.
Error TlsChannel::fail(std::string& out) {
  failed_ = true;
  drain(out);  // an alert, which tells the peer
  const unsigned long noted = ::ERR_peek_last_error();
  const char* const text = ::ERR_reason_error_string(noted);
  ::ERR_clear_error();
  const long verified = ::SSL_get_verify_result(ssl_.get());
  if (ERR_GET_REASON(noted) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
    return {ErrorCode::kRefused, fmt::format("the peer's certificate is not accepted: {}",
                                             ::X509_verify_cert_error_string(verified))};
  }
  if (is_refusing_alert(ERR_GET_REASON(noted))) {
    return {ErrorCode::kRefused,
            fmt::format("the peer does not accept our certificate: {}", text ? text : "no reason")};
  }
  return {ErrorCode::kUnavailable,
          fmt::format("TLS broke off: {}", text ? text : "bytes were changed on their way")};
}

Result<void> TlsChannel::shake(std::string& out) {
  if (ready_) return {};
  ::ERR_clear_error();
  const int done = ::SSL_do_handshake(ssl_.get());
  if (done != 1 && ::SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ) return fail(out);
  drain(out);
  if (done != 1) return {};
  // Without the key's use there would be no proof of anything.
  const bool proved = terms_.external_key.empty() || ::SSL_session_reused(ssl_.get()) == 1;
  if (!proved) return fail(out);
  ready_ = true;
  return {};
}

Result<void> TlsChannel::receive(std::string_view network, std::string& plain,
                                 std::string& out) {
  SPEEDO_ASSERT(!failed_);
  if (over_ && !network.empty()) {
    failed_ = true;
    return Error{ErrorCode::kCorrupt, "goes on after it has ended the channel"};
  }
  if (!network.empty()) {
    const int taken = ::BIO_write(in_, network.data(), static_cast<int>(network.size()));
    SPEEDO_ASSERT(taken == static_cast<int>(network.size()));
  }
  SPEEDO_TRY(shake(out));
  if (!ready_) return {};
  char piece[kPieceBytes];
  // A call that finds nothing costs as much as one that does.
  while (::SSL_pending(ssl_.get()) > 0 || BIO_pending(in_) > 0) {
    forget_errors();
    const int got = ::SSL_read(ssl_.get(), piece, sizeof(piece));
    if (got > 0) {
      plain.append(piece, static_cast<std::size_t>(got));
      continue;
    }
    const int why = ::SSL_get_error(ssl_.get(), got);
    over_ = why == SSL_ERROR_ZERO_RETURN;
    if (why != SSL_ERROR_WANT_READ && !over_) return fail(out);
    break;
  }
  drain(out);
  return {};
}

Result<void> TlsChannel::send(std::string_view plain, std::string& out) {
  SPEEDO_ASSERT(is_ready());
  if (plain.empty()) return {};
  forget_errors();
  const int sent = ::SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size()));
  if (sent != static_cast<int>(plain.size())) return fail(out);
  drain(out);
  return {};
}

void TlsChannel::end(std::string& out) {
  if (!is_ready()) return;
  ::ERR_clear_error();
  ::SSL_shutdown(ssl_.get());
  ::ERR_clear_error();
  drain(out);
}

ChannelPeer TlsChannel::peer() const {
  SPEEDO_ASSERT(is_ready());
  const std::shared_ptr<X509> shown(::SSL_get1_peer_certificate(ssl_.get()), ::X509_free);
  if (!shown) return {};
  const Certificate certificate(shown);
  ChannelPeer peer{.name = certificate.common_name(),
                   .is_master = certificate.is_for(GateRole::kMaster),
                   .is_worker = certificate.is_for(GateRole::kWorker),
                   .name_fault = {}};
  if (!terms_.host.empty() && !certificate.stands_for(terms_.host)) {
    peer.name_fault = fmt::format(
        "the certificate of '{}' is not for the name '{}': it is none of "
        "its alternative names (speedo cert issue --names)",
        peer.name, terms_.host);
  }
  return peer;
}

}  // namespace

Result<std::unique_ptr<Channel>> make_tls_channel(GateSide side, const TlsContext& context,
                                                  const TlsTerms& terms) {
  const bool has_key = !terms.external_key.empty();
  SPEEDO_ASSERT(!has_key || terms.external_key.size() == kExternalKeyBytes);
  SSL* const ssl = ::SSL_new(context.get());
  if (ssl == nullptr) return Error{ErrorCode::kInternal, "no memory for a TLS connection"};
  if (side == GateSide::kListens) {
    if (has_key) ::SSL_set_psk_find_session_callback(ssl, find_external_key);
    ::SSL_set_accept_state(ssl);
  } else {
    if (has_key) ::SSL_set_psk_use_session_callback(ssl, use_external_key);
    ::SSL_set_connect_state(ssl);
    if (!terms.server_name.empty()) SSL_set_tlsext_host_name(ssl, terms.server_name.c_str());
  }
  return std::unique_ptr<Channel>(std::make_unique<TlsChannel>(ssl, terms));
}

}  // namespace speedo
