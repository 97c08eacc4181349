#pragma once

#include <cstdint>

#include <speedo/backend/backend.hpp>

#include "gpu/cublas/blas.hpp"
#include "gpu/launch/queue.hpp"
#include "gpu/library/workspace.hpp"

namespace speedo::gpu {

// What products are computed with. The workspace has Blas::workspace_bytes() reserved.
struct GemmContext {
  Queue& queue;
  Blas& blas;
  Workspace& workspace;
};

// Several products of the same kind: elements between the matrices of one and those of the next; 0
// is the same matrix again.
struct GemmBatch {
  std::int64_t count = 1, a_step = 0, b_step = 0, c_step = 0;
};

// What is done to each row of a product before it is stored; the same length as the row.
struct GemmEpilogue {
  const float* bias = nullptr;  // of the result's type; null: nothing is
  bool rectifies = false;
};

// A product's arrays, and their types: one of a and b; c's is that, or float32.
struct GemmOperands {
  const float* a;
  const float* b;
  float* c;
  ElementType factors = ElementType::kFloat32, result = ElementType::kFloat32;
};

// As Backend::gemm(), queued. What fails, fails the driver.
void gemm(const GemmContext& context, const Backend::Gemm& product, const float* a, const float* b,
          float* c);
void gemm(const GemmContext& context, const Backend::Gemm& product, const GemmBatch& batch,
          const float* a, const float* b, float* c);
void gemm(const GemmContext& context, const Backend::Gemm& product, const GemmEpilogue& epilogue,
          const GemmOperands& operands);  // requires: inner elements

}  // namespace speedo::gpu
