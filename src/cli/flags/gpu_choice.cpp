#include "cli/flags/gpu_choice.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/parse_number.hpp"
#include "cli/net_inputs.hpp"

namespace speedo {
namespace {

bool asks_for_gpu(const caffe::SolverParameter& solver) {
  return solver.has_solver_mode() && solver.solver_mode() == caffe::SolverParameter::GPU;
}

Result<void> check_is_here(int index, const GpusHere& here) {
  if (!here) return here.error();
  const auto count = static_cast<int>(here->size());
  if (index >= 0 && index < count) return {};
  return Error{ErrorCode::kNotFound,
               fmt::format("there is no GPU {}: this machine has {}, numbered from 0", index,
                           count)};
}

}  // namespace

Result<void> check_usable(int index, const GpusHere& here, CheckLibraries libraries) {
  SPEEDO_TRY(check_is_here(index, here));
  SPEEDO_TRY(check_capability((*here)[static_cast<std::size_t>(index)]));
  return libraries();
}

std::vector<int> usable_gpus(const GpusHere& here, CheckLibraries libraries) {
  std::vector<int> usable;
  const int count = here ? static_cast<int>(here->size()) : 0;
  for (int index = 0; index < count; ++index) {
    if (check_usable(index, here, libraries)) usable.push_back(index);
  }
  return usable;
}

Result<int> gpu_of_solver(const caffe::SolverParameter& solver, const GpusHere& here,
                          CheckLibraries libraries) {
  SPEEDO_TRY(check_usable(solver.device_id(), here, libraries));
  return solver.device_id();
}

void follow_solver_mode(const caffe::SolverParameter& solver, const std::string& path,
                        ComputeFlags& flags) {
  if (!asks_for_gpu(solver) || flags.device_given) return;
  const auto gpu = gpu_of_solver(solver, gpu_devices());
  if (gpu) {
    flags.gpu = *gpu;
    return;
  }
  SPEEDO_WARN("'{}' asks for solver_mode GPU: {}; computing on the CPU", path,
              gpu.error().message);
}

void follow_solver_mode_in_turn(const caffe::SolverParameter& solver, const std::string& path,
                                ComputeFlags& flags) {
  if (flags.gpu) return;
  follow_solver_mode(solver, path, flags);
  if (flags.gpu) {
    flags.gpu.reset();
    flags.device = "gpu";
  }
}

Result<std::string> gpus_named(const OptionValues& values) {
  std::string named;
  values.get("gpus", named);
  const Source others = std::max(values.source_of("gpu"), values.source_of("device"));
  if (named.empty() || others > values.source_of("gpus")) return std::string();
  if (others < values.source_of("gpus")) return named;
  return usage_error("--gpus contradicts --gpu and --device: give one of them");
}

Result<std::vector<int>> parse_gpus(const std::string& text, const GpusHere& here) {
  std::vector<int> gpus;
  if (text == "all") {
    if (!here) return here.error();
    gpus.resize(here->size());
    std::iota(gpus.begin(), gpus.end(), 0);
    return gpus;
  }
  for (const std::string& word : split_at_commas(text)) {
    const std::optional<int> index = parse_number<int>(word);
    if (!index || *index < 0) {
      return usage_error("--gpus " + text + ": it can be all, or numbers as in 0,1");
    }
    if (std::find(gpus.begin(), gpus.end(), *index) != gpus.end()) {
      return usage_error(fmt::format("--gpus {} names GPU {} twice", text, *index));
    }
    gpus.push_back(*index);
  }
  if (gpus.empty()) return usage_error("--gpus names no GPU");
  for (const int index : gpus) SPEEDO_TRY(check_is_here(index, here));
  return gpus;
}

}  // namespace speedo
