#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/base/secret.hpp>

#include "gate/channel.hpp"
#include "gate/preamble.hpp"
#include "gate/tls_context.hpp"

namespace speedo {

// A token, or all three files of certificates; neither: GateMode::kOpen.
struct GateFiles {
  std::filesystem::path token;
  CertificateFiles certificates;
  // Asked while a token that is a named pipe is waited for; none: nothing stops that.
  std::function<bool()> stopped = nullptr;
};

// What a gate proves and accepts, as read from its files. A constant: what is read again later is
// another object.
// Thread safety: all methods from any thread.
class GateCredentials {
 public:
  // Errors: those of read_token_file(), certificate_context() and authority_marks().
  static Result<std::shared_ptr<const GateCredentials>> load(const GateFiles& files, GateRole role);
  // Of GateMode::kOpen.
  static std::shared_ptr<const GateCredentials> none();

  GateMode mode() const { return mode_; }
  // That are accepted; the first is the one to prove.
  const std::vector<PreambleKey>& keys() const { return keys_; }

  // `key`: which of keys(); `spoken`: greeting and preamble as they were sent, which the
  // connection's own key is bound to; `host`: that was called, else empty.
  Result<std::unique_ptr<Channel>> make_channel(GateSide side, std::size_t key,
                                                std::string_view spoken,
                                                const std::string& host) const;

 private:
  GateMode mode_ = GateMode::kOpen;
  std::vector<PreambleKey> keys_;
  std::vector<Secret> tokens_;
  TlsContext listens_, calls_;
};

}  // namespace speedo
