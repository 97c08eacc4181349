#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// A GPU of this machine, as CUDA tells of it.
struct GpuDescription {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  // its compute capability
  std::size_t memory_bytes = 0;
  int multiprocessors = 0;
  int shared_bytes = 0;  // of a block
  int registers = 0;     // of a block
  int threads_max = 0;   // of a block
  int bus_id = 0;
};

// All GPUs of this machine, by number; at least one. Errors: kUnsupported if this program was built
// without CUDA, or the driver is too old for it; kNotFound without a driver or a GPU.
Result<std::vector<GpuDescription>> gpu_devices();

// What else a backend on a GPU takes: kernels that this program has for it, and cuBLASLt and cuDNN,
// which are loaded once. Error: kUnsupported, saying what is missing.
Result<void> check_capability(const GpuDescription& device);
Result<void> check_gpu_libraries();

// The versions of CUDA that this program was built with and that the driver has, "13.0"; empty:
// none.
struct CudaVersions {
  std::string built, driver;
};
CudaVersions cuda_versions();

}  // namespace speedo
