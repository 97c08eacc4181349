#pragma once

#include <cublasLt.h>

#include <memory>

#include <speedo/base/result.hpp>

#include "gpu/cublas/blas.hpp"

namespace speedo::gpu {

// The functions of cuBLASLt that are used, wherever they come from: the library, or a test's double
// of it.
struct CublasLtFunctions {
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtGetStatusName) get_status_name = nullptr;
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtDestroy) destroy = nullptr;
  decltype(&::cublasLtMatmulDescCreate) create_task = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) destroy_task = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) set_task = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) get_algorithms = nullptr;
  decltype(&::cublasLtMatmul) multiply = nullptr;
};

// The library's, loaded once. Errors: kUnsupported if it is absent, kMismatch if it is another
// version.
Result<CublasLtFunctions> load_cublas_lt();

// Products by cuBLASLt on the current device. Errors: kMismatch; kInternal, what the library says.
Result<std::unique_ptr<Blas>> make_cublas_lt(const CublasLtFunctions& functions,
                                             const BlasOptions& options);

}  // namespace speedo::gpu
