#include "gate/credentials.hpp"

#include <speedo/base/assert.hpp>

#include "gate/key_material.hpp"
#include "gate/tls_channel.hpp"
#include "gate/token_file.hpp"

namespace speedo {
namespace {

constexpr std::string_view kOpenKey = "whoever comes";

}  // namespace

std::shared_ptr<const GateCredentials> GateCredentials::none() {
  const auto made = std::make_shared<GateCredentials>();
  made->keys_.push_back(preamble_key(kOpenKey));
  return made;
}

Result<std::shared_ptr<const GateCredentials>> GateCredentials::load(const GateFiles& files,
                                                                     GateRole role) {
  const auto made = std::make_shared<GateCredentials>();
  if (!files.token.empty()) {
    made->mode_ = GateMode::kToken;
    SPEEDO_ASSIGN(made->tokens_, read_token_file(files.token, files.stopped));
    for (const Secret& token : made->tokens_) made->keys_.push_back(preamble_key(token.reveal()));
    SPEEDO_ASSIGN(made->listens_, token_context(GateSide::kListens));
    SPEEDO_ASSIGN(made->calls_, token_context(GateSide::kCalls));
    return std::shared_ptr<const GateCredentials>(made);
  }
  if (files.certificates.certificate.empty()) return none();
  made->mode_ = GateMode::kCertificates;
  SPEEDO_ASSIGN(made->listens_, certificate_context(GateSide::kListens, files.certificates));
  SPEEDO_ASSIGN(made->calls_, certificate_context(GateSide::kCalls, files.certificates));
  // Who watches a job does so with a worker's certificate.
  const GateRole shown = role == GateRole::kWatcher ? GateRole::kWorker : role;
  SPEEDO_ASSIGN(const std::vector<std::string> marks, authority_marks(files.certificates, shown));
  for (const std::string& mark : marks) made->keys_.push_back(preamble_key(mark));
  return std::shared_ptr<const GateCredentials>(made);
}

Result<std::unique_ptr<Channel>> GateCredentials::make_channel(GateSide side, std::size_t key,
                                                               std::string_view spoken,
                                                               const std::string& host) const {
  SPEEDO_ASSERT(key < keys_.size());
  if (mode_ == GateMode::kOpen) {
    return std::unique_ptr<Channel>(std::make_unique<OpenChannel>());
  }
  TlsTerms terms;
  if (mode_ == GateMode::kToken) {
    terms.external_key =
        hkdf_sha256(tokens_[key].reveal(), spoken, "speedo gate 1 tls", kExternalKeyBytes);
  } else {
    terms.host = host;
  }
  auto channel =
      make_tls_channel(side, side == GateSide::kListens ? listens_ : calls_, terms);
  if (!terms.external_key.empty()) wipe(terms.external_key);
  return channel;
}

}  // namespace speedo
