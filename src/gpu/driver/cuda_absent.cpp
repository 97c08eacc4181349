// What there is of CUDA in a build without it.

#include <utility>

#include "gpu/driver/cuda.hpp"

namespace speedo {

Result<std::vector<GpuDescription>> gpu_devices() {
  return Error{ErrorCode::kUnsupported,
               "this program was built without NVIDIA's CUDA: leave the GPU out to compute on the "
               "CPU, or build it where nvcc is"};
}

CudaVersions cuda_versions() { return {}; }

namespace gpu {

Result<std::unique_ptr<Driver>> make_cuda_driver(int, GpuFaultHandler) {
  return gpu_devices().error();
}

}  // namespace gpu
}  // namespace speedo
