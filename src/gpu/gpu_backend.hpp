#pragma once

#include <functional>
#include <memory>
#include <string>

#include <speedo/gpu/gpu_backend.hpp>

#include "gpu/cublas/blas.hpp"
#include "gpu/cudnn/dnn.hpp"
#include "gpu/driver/driver.hpp"
#include "gpu/gpu_device.hpp"

namespace speedo::gpu {

// What a backend is made of, CUDA's or tests' doubles.
struct GpuParts {
  std::unique_ptr<Driver> driver;
  // Products and convolutions on the stream of operations; the driver outlives them.
  std::function<Result<std::unique_ptr<Blas>>(StreamHandle)> make_blas;
  std::function<Result<std::unique_ptr<Dnn>>(StreamHandle)> make_dnn;
  Arithmetic arithmetic = Arithmetic::kFloat32;  // of products and convolutions
  GpuDevice::Limits limits = {};
  bool fuses = true;       // see GpuOptions
  bool has_graphs = true;  // whether steps may be recorded
  bool lets_go = false;    // whether the device is given up when the backend ends
  std::string name = "gpu";
};

// Errors: kFull, and what the parts say.
Result<std::unique_ptr<Backend>> make_gpu_backend(GpuParts parts);

}  // namespace speedo::gpu
