// The backend of a build that lacks CUDA, or the headers of its libraries.

#include <speedo/gpu/gpu_backend.hpp>

namespace speedo {

Result<std::unique_ptr<Backend>> make_gpu_backend(const GpuOptions&) {
  SPEEDO_TRY(gpu_devices());
  return check_gpu_libraries().error();
}

Result<void> check_gpu_libraries() {
  return Error{
      ErrorCode::kUnsupported,
      "this program was built without the headers of cuBLASLt and cuDNN: leave the GPU out "
      "to compute on the CPU"};
}

}  // namespace speedo
