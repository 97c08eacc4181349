#include "gate/gate_audit.hpp"

#include <utility>

#include <fmt/format.h>

namespace speedo {

std::string to_text(const GateCounts& counts) {
  return fmt::format("{} connections, {} let in; turned away: {} strangers, {} refused, "
                     "{} too slow, {} displaced, {} cut",
                     counts.connections, counts.admitted, counts.strangers, counts.refused,
                     counts.late, counts.displaced, counts.cut);
}

std::optional<std::uint64_t> AuditPacer::admit(Instant now) {
  if (!begun_ || now - window_ >= kWindow) {
    begun_ = true;
    window_ = now;
    lines_ = 0;
  }
  if (lines_ == kLinesMax) {
    ++left_out_;
    return std::nullopt;
  }
  ++lines_;
  return std::exchange(left_out_, 0);
}

}  // namespace speedo
