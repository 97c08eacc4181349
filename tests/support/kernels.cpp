#include "support/kernels.hpp"

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/cpu/cpu_backend.hpp>
#include <speedo/gpu/gpu_backend.hpp>

#include "cpu/isa.hpp"
#include "support/deferred_backend.hpp"
#include "support/gpu/gpu_double.hpp"

namespace speedo::test {
namespace {

KernelChoice chosen;

const std::shared_ptr<CallLog>& call_log() {
  static const auto log = std::make_shared<CallLog>();
  return log;
}

}  // namespace

Result<void> keep_to(const KernelChoice& choice) {
  if (!choice.isa.empty()) {
    const std::optional<CpuIsa> isa = find_cpu_isa(choice.isa);
    if (!isa) return Error{ErrorCode::kUsage, "unknown instruction set '" + choice.isa + "'"};
    SPEEDO_TRY(limit_cpu_isa(*isa));
  }
  if (choice.no_onednn) SPEEDO_TRY(leave_out_onednn());
  if (choice.gpu) {
    const auto made = make_gpu_backend(GpuOptions{.index = *choice.gpu, .deterministic = true});
    if (!made) return made.error();
  }
  chosen = choice;
  return {};
}

const KernelChoice& kernel_choice() { return chosen; }

// keep_to() has made one before. In float32, which the reference is compared in.
static std::unique_ptr<Backend> made_on_gpu() {
  auto made = make_gpu_backend(
      GpuOptions{.index = *chosen.gpu, .deterministic = true, .fuses = fuses_products()});
  if (!made) std::printf("%s\n", made.error().message.c_str());
  SPEEDO_ASSERT(made.has_value());
  return std::move(*made);
}

std::unique_ptr<Backend> make_backend(int threads) {
  if (chosen.gpu) return made_on_gpu();
  if (chosen.gpu_double) return make_gpu_double(*chosen.gpu_double);
  std::unique_ptr<Backend> backend = make_cpu_backend(threads);
  return chosen.deferred ? make_deferred_backend(std::move(backend)) : std::move(backend);
}

std::unique_ptr<Backend> make_gpu_double(std::uint64_t seed) {
  return make_gpu_double(call_log(), {.seed = seed}, gpu::Arithmetic::kFloat32, fuses_products());
}

bool no_call_was_wrong() {
  const std::vector<std::string> violations = call_log()->violations();
  for (const std::string& each : violations) std::printf("wrong call: %s\n", each.c_str());
  return violations.empty();
}

}  // namespace speedo::test
