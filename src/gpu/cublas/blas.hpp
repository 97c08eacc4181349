#pragma once

#include <cstddef>
#include <cstdint>

#include <speedo/backend/element_type.hpp>
#include <speedo/base/result.hpp>

#include "gpu/driver/driver.hpp"
#include "gpu/library/arithmetic.hpp"
#include "gpu/library/workspace.hpp"

namespace speedo::gpu {

// Of `count` matrices, column major: column i begins at i * stride, the next matrix at `step`; a
// step of 0 is the same matrix again.
struct BlasMatrix {
  bool transposed = false;
  std::int64_t stride = 0, step = 0;
  ElementType type = ElementType::kFloat32;

  auto operator<=>(const BlasMatrix&) const = default;
};

// What is done to a product before it is stored.
enum class BlasEpilogue {
  kNone,
  kBias,      // plus the bias of its row
  kBiasRelu,  // and rectified
};

// Which products: d = alpha op(a) op(b) + beta d, op(a) m x k, op(b) k x n, d m x n. a and b are of
// one type; d is of that, or float32.
struct BlasProducts {
  std::int64_t m = 0, n = 0, k = 0, count = 1;
  BlasMatrix a, b, d;
  BlasEpilogue epilogue = BlasEpilogue::kNone;

  auto operator<=>(const BlasProducts&) const = default;
};

// On what. d overlaps neither a nor b.
struct BlasOperands {
  float alpha = 1.0F;
  const float* a = nullptr;
  const float* b = nullptr;
  float beta = 0.0F;
  float* d = nullptr;
  const float* bias = nullptr;  // of m rows and d's type, if the epilogue adds one
};

struct BlasOptions {
  Arithmetic arithmetic = Arithmetic::kFloat32;
  // What NVIDIA advises for Hopper; earlier devices use less.
  std::size_t workspace_bytes_max = std::size_t{32} << 20U;
};

// The matrix products of one device. Thread safety: one thread at a time.
class Blas {
 public:
  virtual ~Blas() = default;

  // What any product may ask for as working memory; counted once, where products are computed.
  virtual std::size_t workspace_bytes() const = 0;
  // Queued on the stream. Requires: no size is 0; `memory` of workspace_bytes(), for work on this
  // stream alone. Errors: kUnsupported, if the library has no algorithm; kInternal, what it says.
  virtual Result<void> multiply(StreamHandle stream, const BlasProducts& products,
                                const BlasOperands& operands, WorkMemory memory) = 0;
  // How often an algorithm was looked for: once for each kind of product.
  virtual std::int64_t plans() const = 0;
};

}  // namespace speedo::gpu
