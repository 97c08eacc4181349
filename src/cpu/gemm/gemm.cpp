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

void scale_rows(std::int64_t rows, std::int64_t columns, float beta, float* c,
                std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < columns; ++i) {
      float& value = c[r * stride + i];
      value = beta == 0.0F ? 0.0F : beta * value;
    }
  }
}

}  // namespace

void gemm(Op a_op, Op b_op, Backend::GemmShape shape, float alpha, GemmMatrix a, GemmMatrix b,
          float beta, float* c, std::int64_t c_stride) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {
    scale_rows(shape.m, shape.n, beta, c, c_stride);
    return;
  }
  switch (fastest(a_op, b_op, shape)) {
    case Routine::kStream:
      stream_gemm(a_op, b_op, shape, alpha, a, b, beta, c, c_stride);
      return;
    case Routine::kOneDnn:
      onednn_gemm(a_op, b_op, shape, alpha, a, b, beta, c, c_stride);
      return;
    case Routine::kOpenBlas:
      break;
  }
  openblas().sgemm(CblasRowMajor, flag(a_op), flag(b_op), static_cast<int>(shape.m),
                   static_cast<int>(shape.n), static_cast<int>(shape.k), alpha, a.data,
                   static_cast<int>(a.stride), b.data, static_cast<int>(b.stride), beta, c,
                   static_cast<int>(c_stride));
}

void gemm(ThreadPool& pool, Op a_op, Op b_op, Backend::GemmShape shape, float alpha, const float* a,
          const float* b, float beta, float* c) {
  const std::int64_t a_stride = a_op == Op::kNone ? shape.k : shape.m;
  const std::int64_t b_stride = b_op == Op::kNone ? shape.n : shape.k;
  const bool small = shape.m * shape.n * shape.k < kParallelWork;
  const bool by_rows = shape.m >= shape.n;
  const std::int64_t count = by_rows ? shape.m : shape.n;
  pool.split(count, small ? std::max<std::int64_t>(count, 1) : kPartMultiple,
             [&](std::int64_t first, std::int64_t last, int) {
               Backend::GemmShape part = shape;
               GemmMatrix part_a{a, a_stride};
               GemmMatrix part_b{b, b_stride};
               float* part_c = c;
               if (by_rows) {
                 part.m = last - first;
                 part_a.data += a_op == Op::kNone ? first * a_stride : first;
                 part_c += first * shape.n;
               } else {
                 part.n = last - first;
                 part_b.data += b_op == Op::kNone ? first : first * b_stride;
                 part_c += first;
               }
               gemm(a_op, b_op, part, alpha, part_a, part_b, beta, part_c, shape.n);
             });
}

}  // namespace speedo::cpu
