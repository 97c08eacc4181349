#include <fmt/format.h>

#include <speedo/gpu/gpu_devices.hpp>

namespace speedo {
namespace {

// 7.5 is the least that there is code for.
constexpr int kCapabilityMin = 75;

}  // namespace

Result<void> check_capability(const GpuDescription& device) {
  if (device.major * 10 + device.minor >= kCapabilityMin) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("GPU {} ({}) has compute capability {}.{}; 7.5 is the least that this "
                           "program has kernels for",
                           device.index, device.name, device.major, device.minor)};
}

}  // namespace speedo
