#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gate/channel.hpp"
#include "gate/tls_context.hpp"

namespace speedo {

// The key that both sides of one connection have, or what a certificate is held against.
struct TlsTerms {
  std::string external_key;  // kExternalKeyBytes; empty: certificates
  std::string host;          // that was called, to be found in the certificate; empty: any
  std::string server_name;   // what a server of many names is asked for, in clear; empty: nothing
};
inline constexpr std::size_t kExternalKeyBytes = 48;

// TLS 1.3 by OpenSSL over memory. The external key is used with (EC)DHE, so that who learns it
// later reads nothing of what was said before. Error: kInternal.
Result<std::unique_ptr<Channel>> make_tls_channel(GateSide side, const TlsContext& context,
                                                  const TlsTerms& terms);

}  // namespace speedo
