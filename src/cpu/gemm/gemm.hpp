#pragma once

#include <cstdint>

#include <speedo/backend/backend.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// C = alpha op(A) op(B) + beta C on the calling thread, row major, with row strides in elements.
struct GemmMatrix {
  const float* data;
  std::int64_t stride;
};
void gemm(Op a_op, Op b_op, Backend::GemmShape shape, float alpha, GemmMatrix a, GemmMatrix b,
          float beta, float* c, std::int64_t c_stride);

// The same without gaps between rows, divided over the pool's threads.
void gemm(ThreadPool& pool, Op a_op, Op b_op, Backend::GemmShape shape, float alpha, const float* a,
          const float* b, float beta, float* c);

}  // namespace speedo::cpu
