#include "cpu/gemm/blas_core.hpp"

#include "cpu/gemm/openblas.hpp"

namespace speedo::cpu {

Result<std::string_view> blas_core() {
  SPEEDO_TRY(load_openblas());
  return openblas().core;
}

}  // namespace speedo::cpu
