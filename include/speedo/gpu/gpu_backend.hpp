#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/gpu/gpu_devices.hpp>

namespace speedo {

// In what precision products are computed; what is stored, and sums, are float32. kTf32 rounds
// operands to 10 binary digits, kBfloat16 to 7.
enum class GpuPrecision { kFloat32, kTf32, kBfloat16 };

struct GpuOptions {
  int index = 0;  // as CUDA numbers the GPUs of this machine
  GpuPrecision precision = GpuPrecision::kFloat32;
  // The same bits in every run on the same kind of GPU: libraries take only algorithms that promise
  // it. Our own kernels always do.
  bool deterministic = false;
  GpuFaultHandler on_fault;  // empty: what returns a Result says it
};

// The backend on a GPU: cuBLASLt, cuDNN and kernels of our own. Errors: as gpu_devices(); kNotFound
// if there is no GPU of that number; kUnsupported, kMismatch if cuBLASLt or cuDNN is absent or of
// another version; kFull.
Result<std::unique_ptr<Backend>> make_gpu_backend(const GpuOptions& options);

}  // namespace speedo
