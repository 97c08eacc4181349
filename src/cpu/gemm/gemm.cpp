#include "cpu/gemm/gemm.hpp"

#include <algorithm>

#include "cpu/gemm/gemm_stream.hpp"
#include "cpu/gemm/openblas.hpp"
#include "cpu/isa.hpp"
#include "cpu/onednn/onednn.hpp"

namespace speedo::cpu {
namespace {

// Below this many multiplications, handing out work costs more than it saves (some 10
// microseconds).
constexpr std::int64_t kParallelWork = 1 << 20;

// Parts are multiples of the micro-kernel's tile, so that none of them wastes lanes.
constexpr std::int64_t kPartMultiple = 16;

// Which routine is the fastest, by measurement (Zen 5, the nets' inner products and im2col's
// products). Ours for a weight matrix and a small batch; oneDNN's with AVX-512, but for the
// smallest; OpenBLAS' else.
enum class Routine { kStream, kOneDnn, kOpenBlas };

Routine fastest(Op a_op, Op b_op, Backend::GemmShape shape) {
  const bool wide = cpu_isa() == CpuIsa::kAvx512;
  if (a_op == Op::kNone && b_op == Op::kTranspose && shape.m <= 96 && shape.n * shape.k >= 8192) {
    return Routine::kStream;
  }
  if (a_op == Op::kTranspose && b_op == Op::kNone && shape.k <= (wide ? 64 : 8) &&
      shape.m * shape.n >= 1 << 17) {
    return Routine::kStream;
  }
  if (wide && uses_onednn() && shape.m * shape.n * shape.k >= 1 << 19) return Routine::kOneDnn;
  if (wide && a_op == Op::kNone && b_op == Op::kNone && shape.m <= 64 &&
      shape.n * shape.k >= 1 << 16) {
    return Routine::kStream;
  }
  return Routine::kOpenBlas;
}

CBLAS_TRANSPOSE flag(Op op) { return op == Op::kNone ? CblasNoTrans : CblasTrans; }

void scale_rows(const Backend::Gemm& product, GemmTarget c) {
  for (std::int64_t r = 0; r < product.shape.m; ++r) {
    for (std::int64_t i = 0; i < product.shape.n; ++i) {
      float& value = c.data[r * c.stride + i];
      value = product.beta == 0.0F ? 0.0F : product.beta * value;
    }
  }
}

}  // namespace

void gemm(const Backend::Gemm& product, GemmMatrix a, GemmMatrix b, GemmTarget c) {
  const Backend::GemmShape& shape = product.shape;
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {
    scale_rows(product, c);
    return;
  }
  switch (fastest(product.a_op, product.b_op, shape)) {
    case Routine::kStream:
      stream_gemm(product, a, b, c);
      return;
    case Routine::kOneDnn:
      onednn_gemm(product, a, b, c);
      return;
    case Routine::kOpenBlas:
      break;
  }
  openblas().sgemm(CblasRowMajor, flag(product.a_op), flag(product.b_op), static_cast<int>(shape.m),
                   static_cast<int>(shape.n), static_cast<int>(shape.k), product.alpha, a.data,
                   static_cast<int>(a.stride), b.data, static_cast<int>(b.stride), product.beta,
                   c.data, static_cast<int>(c.stride));
}

void gemm(ThreadPool& pool, const Backend::Gemm& product, const float* a, const float* b,
          float* c) {
  const Backend::GemmShape& shape = product.shape;
  const std::int64_t a_stride = product.a_op == Op::kNone ? shape.k : shape.m;
  const std::int64_t b_stride = product.b_op == Op::kNone ? shape.n : shape.k;
  const bool small = shape.m * shape.n * shape.k < kParallelWork;
  const bool by_rows = shape.m >= shape.n;
  const std::int64_t count = by_rows ? shape.m : shape.n;
  pool.split(count, small ? std::max<std::int64_t>(count, 1) : kPartMultiple,
             [&](std::int64_t first, std::int64_t last, int) {
               Backend::Gemm part = product;
               GemmMatrix part_a{a, a_stride};
               GemmMatrix part_b{b, b_stride};
               GemmTarget part_c{c, shape.n};
               if (by_rows) {
                 part.shape.m = last - first;
                 part_a.data += product.a_op == Op::kNone ? first * a_stride : first;
                 part_c.data += first * shape.n;
               } else {
                 part.shape.n = last - first;
                 part_b.data += product.b_op == Op::kNone ? first : first * b_stride;
                 part_c.data += first;
               }
               gemm(part, part_a, part_b, part_c);
             });
}

}  // namespace speedo::cpu
