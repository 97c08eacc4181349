#include "cli/flags/gate_flags.hpp"

namespace speedo {

GateFlags gate_flags(const OptionValues& values) {
  GateFlags flags;
  values.get("token-file", flags.token_file);
  values.get("tls-cert", flags.tls_cert);
  values.get("tls-key", flags.tls_key);
  values.get("tls-ca", flags.tls_ca);
  return flags;
}

Result<void> check(const GateFlags& flags) {
  const int named = (flags.tls_cert.empty() ? 0 : 1) + (flags.tls_key.empty() ? 0 : 1) +
                    (flags.tls_ca.empty() ? 0 : 1);
  if (named != 0 && !flags.token_file.empty()) {
    return usage_error("--token-file and --tls-cert are two ways to prove who comes in: give one");
  }
  if (named == 0 || named == 3) return {};
  return usage_error("--tls-cert, --tls-key and --tls-ca belong together: give all three");
}

}  // namespace speedo
