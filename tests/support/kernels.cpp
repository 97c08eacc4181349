#include "support/kernels.hpp"

#include <optional>

#include "cpu/isa.hpp"

namespace speedo::test {

Result<void> keep_to(const KernelChoice& choice) {
  if (!choice.isa.empty()) {
    const std::optional<CpuIsa> isa = find_cpu_isa(choice.isa);
    if (!isa) return Error{ErrorCode::kUsage, "unknown instruction set '" + choice.isa + "'"};
    SPEEDO_TRY(limit_cpu_isa(*isa));
  }
  if (choice.no_onednn) SPEEDO_TRY(leave_out_onednn());
  return {};
}

}  // namespace speedo::test
