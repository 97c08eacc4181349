#include "cli/flags/compute_flags.hpp"

#include <optional>

#include <fmt/format.h>

#include <speedo/cpu/cpu_backend.hpp>
#include <speedo/gpu/gpu_devices.hpp>

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
  if (flags.precision != "f32" && !flags.gpu && flags.device == "cpu") {
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

// That of the machine's GPUs, which is there.
Result<GpuDescription> find_gpu(int index) {
  auto devices = gpu_devices();
  const std::string asked = fmt::format("GPU {}: ", index);
  if (!devices) return Error{devices.error().code, asked + devices.error().message};
  const auto count = static_cast<int>(devices->size());
  if (index < count) return (*devices)[static_cast<std::size_t>(index)];
  return Error{ErrorCode::kNotFound,
               fmt::format("{}this machine has {} GPU{}, numbered from 0", asked, count,
                           count == 1 ? "" : "s")};
}

GpuPrecision gpu_precision(const std::string& word) {
  if (word == "tf32") return GpuPrecision::kTf32;
  if (word == "fp16") return GpuPrecision::kFloat16;
  return word == "bf16" ? GpuPrecision::kBfloat16 : GpuPrecision::kFloat32;
}

const char* name_of(GpuPrecision precision) {
  switch (precision) {
    case GpuPrecision::kFloat32: break;
    case GpuPrecision::kTf32: return "tf32";
    case GpuPrecision::kBfloat16: return "bfloat16";
    case GpuPrecision::kFloat16: return "float16";
  }
  return "float32";
}

Result<void> settle_gpu(const ComputeFlags& flags, int index, ComputeOptions& options) {
  SPEEDO_ASSIGN(const GpuDescription device, find_gpu(index));
  const GpuPrecision precision = gpu_precision(flags.precision);
  constexpr int kAmpere = 8;  // that has tensor cores for tf32 and bf16; all have them for fp16
  const bool is_anywhere =
      precision == GpuPrecision::kFloat32 || precision == GpuPrecision::kFloat16;
  if (!is_anywhere && device.major < kAmpere) {
    return usage_error(fmt::format("--precision {}: GPU {} ({}) has compute capability {}.{}, and "
                                   "8.0 is needed",
                                   flags.precision, index, device.name, device.major,
                                   device.minor));
  }
  options.gpu = GpuOptions{.index = index,
                           .precision = precision,
                           .deterministic = flags.pinned,
                           .graphs = flags.graphs};
  return {};
}

// A backend finds out whether the machine has what a precision needs.
Result<void> check_precision(const ComputeFlags& flags, const ComputeOptions& options) {
  if (options.precision == CpuPrecision::kFloat32) return {};
  auto made = make_cpu_backend(CpuOptions{.threads = 1, .precision = options.precision});
  if (made) return {};
  return Error{made.error().code, "--precision " + flags.precision + ": " + made.error().message};
}

void take_device(const OptionValues& values, ComputeFlags& flags) {
  const Source device = values.source_of("device"), gpu = values.source_of("gpu");
  flags.device_given = device != Source::kDefault || gpu != Source::kDefault;
  if (device < gpu) return;
  if (device > gpu) flags.gpu.reset();
  values.get("device", flags.device);
  flags.cpu_given = device != Source::kDefault && flags.device == "cpu";
}

}  // namespace

ComputeFlags compute_flags(const OptionValues& values) {
  ComputeFlags flags;
  values.get("threads", flags.threads);
  values.get("cpu-isa", flags.isa);
  values.get("precision", flags.precision);
  values.get("gpu", flags.gpu);
  std::string graphs = "on";
  values.get("cuda-graphs", graphs);
  flags.graphs = graphs == "on";
  // Of extract_features `device` is another one.
  flags.device_given = flags.gpu.has_value();
  if (values.program() != Program::kExtractFeatures) take_device(values, flags);
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
  SPEEDO_ASSIGN(const std::optional<int> gpu, gpu_of(flags));
  if (gpu) {
    SPEEDO_TRY(settle_gpu(flags, *gpu, options));
    return options;
  }
  if (flags.precision == "tf32" || flags.precision == "fp16") {
    return usage_error(fmt::format("--precision {}: only GPUs have it", flags.precision));
  }
  if (flags.precision == "bf16") options.precision = CpuPrecision::kBfloat16;
  SPEEDO_TRY(check_precision(flags, options));
  return options;
}

Result<std::optional<int>> gpu_of(const ComputeFlags& flags) {
  constexpr std::string_view kGpu = "gpu";
  const std::string_view device = flags.device;
  const auto contradiction = [&flags] {
    return usage_error(
        fmt::format("--device {} contradicts --gpu {}: give one", flags.device, *flags.gpu));
  };
  if (device == "cpu" && flags.cpu_given && flags.gpu) return contradiction();
  if (device == "cpu") return flags.gpu;
  std::optional<int> index = flags.gpu.value_or(0);
  if (device != kGpu) {
    index.reset();
    if (device.starts_with("gpu:")) index = parse_number<int>(flags.device.substr(kGpu.size() + 1));
  }
  if (!index || *index < 0 || *index > kGpuMax) {
    return usage_error(fmt::format("--device {}: it can be cpu, gpu, or gpu:0 to gpu:{}",
                                   flags.device, kGpuMax));
  }
  if (flags.gpu && *flags.gpu != *index) return contradiction();
  return index;
}

Result<void> check_device(const ComputeFlags& flags) {
  auto gpu = gpu_of(flags);
  if (!gpu) return gpu.error();
  return {};
}

Result<void> check_worker_precision(const ComputeFlags& flags) {
  if (flags.precision != "fp16") return {};
  return usage_error("--precision fp16: workers cannot have it; use bf16 or tf32");
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
  if (flags.gpu) arguments.push_back(fmt::format("--gpu={}", *flags.gpu));
  if (flags.device != "cpu") arguments.push_back("--device=" + flags.device);
  if (!flags.graphs) arguments.emplace_back("--cuda-graphs=off");
  if (flags.skip_bad_records) arguments.emplace_back("--on-bad-record=skip");
  return arguments;
}

std::string caffe_sentence(const ComputeOptions& options) {
  if (!options.gpu) return "Use CPU.";
  return fmt::format("Use GPU with device ID {}", options.gpu->index);
}

std::string device_text(const ComputeOptions& options) {
  if (!options.gpu) return "cpu";
  std::string text = fmt::format("gpu:{}", options.gpu->index);
  if (const auto device = find_gpu(options.gpu->index)) text += " " + device->name;
  const GpuPrecision precision = options.gpu->precision;
  if (precision != GpuPrecision::kFloat32) text += fmt::format(", {}", name_of(precision));
  return text;
}

std::string describe(const ComputeOptions& options) {
  if (options.gpu) {
    return fmt::format("GPU {}, {}", options.gpu->index, name_of(options.gpu->precision));
  }
  return fmt::format("{} thread{}, {} kernels, {}", options.threads,
                     options.threads == 1 ? "" : "s",
                     are_cpu_kernels_pinned() ? "deterministic" : name(cpu_isa()),
                     options.precision == CpuPrecision::kBfloat16 ? "bfloat16" : "float32");
}

}  // namespace speedo
