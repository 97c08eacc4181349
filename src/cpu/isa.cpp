#include "cpu/isa.hpp"

#include <hwy/targets.h>

#include <atomic>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include "cpu/onednn/onednn.hpp"

namespace speedo {
namespace {

std::atomic<bool> isa_settled{false};
std::atomic<CpuIsa> isa_limit{CpuIsa::kAvx512};
std::atomic<bool> onednn_left_out{false};
std::atomic<bool> kernels_pinned{false};

// What `isa` needs and this machine has not; empty if nothing.
std::string missing_features([[maybe_unused]] CpuIsa isa) {
  std::string missing;
#if defined(__x86_64__)
  const auto need = [&](bool present, std::string_view feature) {
    if (!present) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", feature);
  };
  __builtin_cpu_init();
  if (isa == CpuIsa::kPortable) return missing;
  need(__builtin_cpu_supports("avx2"), "AVX2");
  need(__builtin_cpu_supports("fma"), "FMA");
  if (isa == CpuIsa::kAvx2) return missing;
  need(__builtin_cpu_supports("avx512f"), "AVX-512 F");
  need(__builtin_cpu_supports("avx512bw"), "AVX-512 BW");
  need(__builtin_cpu_supports("avx512cd"), "AVX-512 CD");
  need(__builtin_cpu_supports("avx512dq"), "AVX-512 DQ");
  need(__builtin_cpu_supports("avx512vl"), "AVX-512 VL");
#else
  if (isa != CpuIsa::kPortable) missing = "the x86-64 architecture";
#endif
  return missing;
}

void limit_highway([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  // Better targets have lower bits.
  std::int64_t disabled = 0;
  if (isa < CpuIsa::kAvx512) disabled |= HWY_AVX2 - 1;
  if (isa < CpuIsa::kAvx2) disabled |= HWY_SSE4 - 1;
  hwy::DisableTargets(disabled);
#endif
}

}  // namespace

std::string_view name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      break;
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kAvx512:
      return "avx512";
  }
  return "portable";
}

std::optional<CpuIsa> find_cpu_isa(std::string_view wanted) {
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (name(isa) == wanted) return isa;
  }
  return std::nullopt;
}

// Asked for by every product of matrices.
CpuIsa machine_isa() {
  static const CpuIsa best = [] {
    for (const CpuIsa isa : {CpuIsa::kAvx512, CpuIsa::kAvx2}) {
      if (missing_features(isa).empty()) return isa;
    }
    return CpuIsa::kPortable;
  }();
  return best;
}

CpuIsa cpu_isa() { return std::min(isa_limit.load(), machine_isa()); }

bool fuses_products() {
#if defined(__x86_64__)
  return cpu_isa() != CpuIsa::kPortable;
#else
  return true;
#endif
}

Result<void> limit_cpu_isa(CpuIsa isa) {
  if (const std::string missing = missing_features(isa); !missing.empty()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("this machine cannot run {} kernels: it lacks {}; it can run {}",
                             name(isa), missing, name(machine_isa()))};
  }
  if (isa == cpu_isa()) return {};
  if (isa_settled.load()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("the instruction set is {} since the first backend was made", name(cpu_isa()))};
  }
  if (!cpu::limit_onednn(isa)) {
    return Error{ErrorCode::kUsage, "this oneDNN takes no limit of its instruction set"};
  }
  isa_limit.store(isa);
  limit_highway(isa);
  return {};
}

Result<void> leave_out_onednn() {
  if (!cpu::uses_onednn()) return {};
  if (isa_settled.load()) {
    return Error{ErrorCode::kUsage, "oneDNN is in use since the first backend was made"};
  }
  onednn_left_out.store(true);
  return {};
}

Result<void> pin_cpu_kernels() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (kernels_pinned.load()) return {};
  SPEEDO_TRY(cpu::check_pinnable(machine_isa()));
  if (isa_settled.load()) {
    return Error{ErrorCode::kUsage,
                 "this process has computed with the kernels that are best for its machine, and "
                 "cannot change to those that give every machine the same result: start it again"};
  }
  kernels_pinned.store(true);
  onednn_left_out.store(true);
  isa_limit.store(CpuIsa::kPortable);
  limit_highway(CpuIsa::kPortable);
  return {};
}

bool are_cpu_kernels_pinned() { return kernels_pinned.load(); }

namespace cpu {

Result<void> check_pinnable([[maybe_unused]] CpuIsa machine) {
#if defined(__x86_64__)
  if (machine < CpuIsa::kAvx2) {
    return Error{ErrorCode::kUsage,
                 "this processor lacks AVX2 or FMA: the C library's powers and logarithms have "
                 "other last bits here than where there are both, so the result would not be that "
                 "of other machines"};
  }
#endif
  return {};
}

bool uses_onednn() { return has_onednn() && !onednn_left_out.load(); }

bool has_bfloat16() {
#if defined(__x86_64__)
  return uses_onednn() && cpu_isa() == CpuIsa::kAvx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void settle_cpu_isa() { isa_settled.store(true); }

}  // namespace cpu
}  // namespace speedo
