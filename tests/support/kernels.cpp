#include "support/kernels.hpp"

#include <optional>
#include <utility>

#include <speedo/cpu/cpu_backend.hpp>

#include "cpu/isa.hpp"
#include "support/deferred_backend.hpp"

namespace speedo::test {
namespace {

KernelChoice chosen;

}  // namespace

Result<void> keep_to(const KernelChoice& choice) {
  if (!choice.isa.empty()) {
    const std::optional<CpuIsa> isa = find_cpu_isa(choice.isa);
    if (!isa) return Error{ErrorCode::kUsage, "unknown instruction set '" + choice.isa + "'"};
    SPEEDO_TRY(limit_cpu_isa(*isa));
  }
  if (choice.no_onednn) SPEEDO_TRY(leave_out_onednn());
  chosen = choice;
  return {};
}

const KernelChoice& kernel_choice() { return chosen; }

std::unique_ptr<Backend> make_backend(int threads) {
  std::unique_ptr<Backend> backend = make_cpu_backend(threads);
  return chosen.deferred ? make_deferred_backend(std::move(backend)) : std::move(backend);
}

}  // namespace speedo::test
