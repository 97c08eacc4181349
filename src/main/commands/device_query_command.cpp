#include <cstdio>
#include <vector>

#include <nlohmann/json.hpp>

#include <speedo/gpu/gpu_devices.hpp>

#include "base/json_text.hpp"
#include "cli/report/console.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"

namespace speedo {
namespace {

constexpr double kMegabyte = 1048576.0;

void print(const std::vector<GpuDescription>& devices) {
  const CudaVersions versions = cuda_versions();
  std::printf("CUDA %s, driver's CUDA %s\n", versions.built.c_str(), versions.driver.c_str());
  for (const GpuDescription& each : devices) {
    std::printf(
        "Device id:                     %d\n"
        "Name:                          %s\n"
        "Compute capability:            %d.%d\n"
        "Total global memory:           %.0f MB\n"
        "Multiprocessors:               %d\n"
        "Total shared memory per block: %d\n"
        "Total registers per block:     %d\n"
        "Maximum threads per block:     %d\n",
        each.index, each.name.c_str(), each.major, each.minor,
        static_cast<double>(each.memory_bytes) / kMegabyte, each.multiprocessors,
        each.shared_bytes, each.registers, each.threads_max);
  }
}

void print_json(const std::vector<GpuDescription>& devices) {
  nlohmann::json all = nlohmann::json::array();
  for (const GpuDescription& each : devices) {
    all.push_back({{"index", each.index},
                   {"name", each.name},
                   {"compute_capability", std::to_string(each.major) + "." +
                                              std::to_string(each.minor)},
                   {"memory_bytes", each.memory_bytes},
                   {"multiprocessors", each.multiprocessors}});
  }
  std::printf("%s\n", json_text(all).c_str());
}

}  // namespace

Result<int> device_query_command(const CommandLine& line) {
  OptionValues values(Program::kDeviceQuery);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  bool json = false;
  values.get("json", json);
  SPEEDO_ASSIGN(const std::vector<GpuDescription> devices, gpu_devices());
  json ? print_json(devices) : print(devices);
  return 0;
}

}  // namespace speedo
