#pragma once

#include <memory>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/gpu/gpu_devices.hpp>
#include <speedo/gpu/gpu_options.hpp>

#include "gpu/driver/driver.hpp"

namespace speedo::gpu {

// The GPU of that number by CUDA's calls. `on_fault` as in GpuOptions. Errors: as gpu_devices();
// kNotFound if there are fewer.
Result<std::unique_ptr<Driver>> make_cuda_driver(int index, GpuFaultHandler on_fault);

}  // namespace speedo::gpu
