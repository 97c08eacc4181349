#pragma once

#include "cpu/gemm/gemm.hpp"

namespace speedo::cpu {

// Matrix products of which one dimension is a batch, and so small that bringing a weight matrix
// into another order, as general products do, costs as much as the arithmetic: this reads and
// writes it as it lies, once. Contract as gemm(). Requires: not both transposed.
void stream_gemm(const Backend::Gemm& product, GemmMatrix a, GemmMatrix b, GemmTarget c);

}  // namespace speedo::cpu
