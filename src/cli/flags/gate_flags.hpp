#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/options/option_values.hpp"

namespace speedo {

// By what a master and its peers know one another: the files of a token or of certificates.
struct GateFlags {
  std::string token_file;
  std::string tls_cert, tls_key, tls_ca;

  bool any() const { return !token_file.empty() || !tls_cert.empty(); }
};

GateFlags gate_flags(const OptionValues& values);

// Error: kUsage for what does not belong together.
Result<void> check(const GateFlags& flags);

}  // namespace speedo
