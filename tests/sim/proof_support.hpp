#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "base/log.hpp"
#include "sim/proof/proof_campaign.hpp"

namespace speedo::sim {

// The real parts; what simulated processes log about faults that were meant is not for the report.
inline ProofParts real_parts() {
  set_log_level(LogLevel::kNothing);
  ProofParts parts;
  parts.make_backend = []() -> Result<std::unique_ptr<Backend>> { return make_cpu_backend(1); };
  return parts;
}

}  // namespace speedo::sim
