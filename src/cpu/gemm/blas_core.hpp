#pragma once

#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo::cpu {

// Which kernels OpenBLAS takes here, in its own words ("SkylakeX"). Loads it. Errors: those of
// load_openblas().
Result<std::string_view> blas_core();

}  // namespace speedo::cpu
