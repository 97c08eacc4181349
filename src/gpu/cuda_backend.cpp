#include <speedo/gpu/gpu_backend.hpp>

#include <utility>

#include <fmt/format.h>

#include "gpu/cublas/cublas_lt.hpp"
#include "gpu/cudnn/cudnn_functions.hpp"
#include "gpu/driver/cuda.hpp"
#include "gpu/gpu_backend.hpp"

namespace speedo {
namespace {

gpu::Arithmetic arithmetic_of(GpuPrecision precision) {
  switch (precision) {
    case GpuPrecision::kFloat32:
      break;
    case GpuPrecision::kTf32:
      return gpu::Arithmetic::kTf32;
    case GpuPrecision::kBfloat16:
      return gpu::Arithmetic::kBfloat16;
    case GpuPrecision::kFloat16:
      return gpu::Arithmetic::kFloat16;
  }
  return gpu::Arithmetic::kFloat32;
}

}  // namespace

Result<void> check_gpu_libraries() {
  SPEEDO_TRY(gpu::load_cublas_lt());
  SPEEDO_TRY(gpu::load_cudnn());
  return {};
}

Result<std::unique_ptr<Backend>> make_gpu_backend(const GpuOptions& options) {
  gpu::GpuParts parts;
  SPEEDO_ASSIGN(parts.driver, gpu::make_cuda_driver(options.index, options.on_fault));
  SPEEDO_ASSIGN(const gpu::CublasLtFunctions cublas, gpu::load_cublas_lt());
  SPEEDO_ASSIGN(const gpu::CudnnFunctions cudnn, gpu::load_cudnn());
  const gpu::Arithmetic arithmetic = arithmetic_of(options.precision);
  parts.arithmetic = arithmetic;
  parts.fuses = options.fuses;
  parts.has_graphs = options.graphs;
  parts.lets_go = options.lets_go;
  parts.make_blas = [=](gpu::StreamHandle) {
    return gpu::make_cublas_lt(cublas, {.arithmetic = arithmetic});
  };
  const gpu::DnnOptions dnn{.arithmetic = arithmetic,
                            .is_deterministic = options.deterministic,
                            .measures = options.tries};
  parts.make_dnn = [=](gpu::StreamHandle stream) { return gpu::make_cudnn(cudnn, stream, dnn); };
  parts.name = fmt::format("gpu {}", options.index);
  return gpu::make_gpu_backend(std::move(parts));
}

}  // namespace speedo
