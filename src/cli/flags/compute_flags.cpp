#include "cli/flags/compute_flags.hpp"

#include <optional>

#include <fmt/format.h>

#include <speedo/cpu/cpu_backend.hpp>

#include "base/log.hpp"
#include "cpu/isa.hpp"

namespace speedo {

namespace {

Result<void> limit_isa(const std::string& wanted) {
  const std::optional<CpuIsa> isa = find_cpu_isa(wanted);
  if (!isa) return {};
  auto limited = limit_cpu_isa(*isa);
  if (limited) return {};
  return Error{limited.error().code, "--cpu-isa " + wanted + ": " + limited.error().message};
}

Result<void> pin_kernels(const ComputeFlags& flags) {
  if (flags.precision != "f32") {
    return Error{ErrorCode::kUsage,
                 "--precision " + flags.precision +
                     " computes what not every machine can, so --deterministic contradicts it: "
                     "leave one out"};
  }
  if (!flags.isa.empty()) {
    SPEEDO_INFO("--cpu-isa {}: no effect, as --deterministic takes the same kernels everywhere",
                flags.isa);
  }
  return pin_cpu_kernels();
}

// A backend finds out whether the machine has what a precision needs.
Result<void> check_precision(const ComputeFlags& flags, const ComputeOptions& options) {
  if (options.precision == CpuPrecision::kFloat32) return {};
  auto made = make_cpu_backend(CpuOptions{.threads = 1, .precision = options.precision});
  if (made) return {};
  return Error{made.error().code, "--precision " + flags.precision + ": " + made.error().message};
}

}  // namespace

ComputeFlags compute_flags(const OptionValues& values) {
  ComputeFlags flags;
  values.get("threads", flags.threads);
  values.get("cpu-isa", flags.isa);
  values.get("precision", flags.precision);
  flags.skip_bad_records = skips_bad_records(values);
  return flags;
}

bool skips_bad_records(const OptionValues& values) {
  std::string on_bad_record;
  values.get("on-bad-record", on_bad_record);
  return on_bad_record == "skip";
}

Result<ComputeOptions> settle(const ComputeFlags& flags) {
  SPEEDO_TRY(flags.pinned ? pin_kernels(flags) : limit_isa(flags.isa));
  ComputeOptions options;
  options.threads = flags.threads > 0 ? flags.threads : default_threads();
  options.skip_bad_records = flags.skip_bad_records;
  if (flags.precision == "bf16") options.precision = CpuPrecision::kBfloat16;
  SPEEDO_TRY(check_precision(flags, options));
  return options;
}

Result<void> check_thread_count(const ComputeFlags& flags, std::uint64_t workers) {
  if (flags.threads == 0 || static_cast<std::uint64_t>(flags.threads) >= workers) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("--threads {} is less than one for each of the {} workers",
                           flags.threads, workers)};
}

std::vector<std::string> to_arguments(const ComputeFlags& flags) {
  std::vector<std::string> arguments;
  if (!flags.isa.empty()) arguments.push_back("--cpu-isa=" + flags.isa);
  if (flags.precision != "f32") arguments.push_back("--precision=" + flags.precision);
  if (flags.skip_bad_records) arguments.emplace_back("--on-bad-record=skip");
  return arguments;
}

std::string describe(const ComputeOptions& options) {
  return fmt::format("{} thread{}, {} kernels, {}", options.threads,
                     options.threads == 1 ? "" : "s",
                     are_cpu_kernels_pinned() ? "deterministic" : name(cpu_isa()),
                     options.precision == CpuPrecision::kBfloat16 ? "bfloat16" : "float32");
}

}  // namespace speedo
