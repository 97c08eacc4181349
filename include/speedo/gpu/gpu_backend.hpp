#pragma once

#include <memory>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/gpu/gpu_devices.hpp>
#include <speedo/gpu/gpu_options.hpp>

namespace speedo {

// The backend on a GPU: cuBLASLt, cuDNN and kernels of our own. Errors: as gpu_devices(); kNotFound
// if there is no GPU of that number; kUnsupported, kMismatch if cuBLASLt or cuDNN is absent or of
// another version; kFull.
Result<std::unique_ptr<Backend>> make_gpu_backend(const GpuOptions& options);

}  // namespace speedo
