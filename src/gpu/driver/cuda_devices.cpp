#include <speedo/gpu/gpu_devices.hpp>

#include <cuda_runtime_api.h>

#include <fmt/format.h>

namespace speedo {
namespace {

// 13000 is 13.0.
std::string version_name(int version) {
  return version == 0 ? std::string() : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Error no_devices(cudaError_t status) {
  const CudaVersions versions = cuda_versions();
  if (versions.driver.empty()) {
    return {ErrorCode::kNotFound,
            "no NVIDIA driver is installed here (libcuda.so.1 cannot be loaded): leave the GPU out "
            "to compute on the CPU"};
  }
  if (status == cudaErrorInsufficientDriver) {
    return {ErrorCode::kUnsupported,
            fmt::format("the NVIDIA driver is too old: it has CUDA {}, and this program needs {}; "
                        "install a newer driver",
                        versions.driver, versions.built)};
  }
  if (status == cudaErrorNoDevice || status == cudaSuccess) {
    return {ErrorCode::kNotFound,
            "there is no NVIDIA GPU here, or CUDA_VISIBLE_DEVICES hides it: leave the GPU out to "
            "compute on the CPU"};
  }
  return {ErrorCode::kNotFound,
          fmt::format("no GPU can be used: CUDA says \"{}\"", cudaGetErrorString(status))};
}

}  // namespace

CudaVersions cuda_versions() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  return {version_name(CUDART_VERSION), version_name(driver)};
}

Result<std::vector<GpuDescription>> gpu_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) return no_devices(status);
  std::vector<GpuDescription> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (const cudaError_t said = cudaGetDeviceProperties(&properties, index); said != cudaSuccess) {
      return no_devices(said);
    }
    devices.push_back({.index = index,
                       .name = properties.name,
                       .major = properties.major,
                       .minor = properties.minor,
                       .memory_bytes = properties.totalGlobalMem,
                       .multiprocessors = properties.multiProcessorCount,
                       .shared_bytes = static_cast<int>(properties.sharedMemPerBlock),
                       .registers = properties.regsPerBlock,
                       .threads_max = properties.maxThreadsPerBlock,
                       .bus_id = properties.pciBusID});
  }
  return devices;
}

}  // namespace speedo
