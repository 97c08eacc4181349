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
struct GemmTarget {
  float* data;
  std::int64_t stride;
};
void gemm(const Backend::Gemm& product, GemmMatrix a, GemmMatrix b, GemmTarget c);

// The same without gaps between rows, divided over the pool's threads.
void gemm(ThreadPool& pool, const Backend::Gemm& product, const float* a, const float* b, float* c);

}  // namespace speedo::cpu
