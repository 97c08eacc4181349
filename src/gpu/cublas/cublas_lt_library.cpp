#include "gpu/cublas/cublas_lt.hpp"

#include <fmt/format.h>

#include "gpu/library/shared_library.hpp"

namespace speedo::gpu {
namespace {

Result<CublasLtFunctions> find_cublas_lt() {
  SPEEDO_ASSIGN(const SharedLibrary library,
                SharedLibrary::load(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
                                    fmt::format("install cuBLAS {} (part of the CUDA toolkit), or "
                                                "name its folder in LD_LIBRARY_PATH",
                                                CUBLAS_VER_MAJOR)));
  CublasLtFunctions found;
  SPEEDO_TRY(library.find("cublasLtGetVersion", found.get_version));
  SPEEDO_TRY(library.find("cublasLtGetStatusName", found.get_status_name));
  SPEEDO_TRY(library.find("cublasLtCreate", found.create));
  SPEEDO_TRY(library.find("cublasLtDestroy", found.destroy));
  SPEEDO_TRY(library.find("cublasLtMatmulDescCreate", found.create_task));
  SPEEDO_TRY(library.find("cublasLtMatmulDescDestroy", found.destroy_task));
  SPEEDO_TRY(library.find("cublasLtMatmulDescSetAttribute", found.set_task));
  SPEEDO_TRY(library.find("cublasLtMatrixLayoutCreate", found.create_layout));
  SPEEDO_TRY(library.find("cublasLtMatrixLayoutDestroy", found.destroy_layout));
  SPEEDO_TRY(library.find("cublasLtMatrixLayoutSetAttribute", found.set_layout));
  SPEEDO_TRY(library.find("cublasLtMatmulPreferenceCreate", found.create_preference));
  SPEEDO_TRY(library.find("cublasLtMatmulPreferenceDestroy", found.destroy_preference));
  SPEEDO_TRY(library.find("cublasLtMatmulPreferenceSetAttribute", found.set_preference));
  SPEEDO_TRY(library.find("cublasLtMatmulAlgoGetHeuristic", found.get_algorithms));
  SPEEDO_TRY(library.find("cublasLtMatmul", found.multiply));
  return found;
}

}  // namespace

Result<CublasLtFunctions> load_cublas_lt() {
  static const Result<CublasLtFunctions> found = find_cublas_lt();
  return found;
}

}  // namespace speedo::gpu
