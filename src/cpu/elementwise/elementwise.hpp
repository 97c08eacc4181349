#pragma once

#include <cstdint>

#include <speedo/backend/backend.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Vectors of n elements on the calling thread; contracts as in Backend.

void map(const UnaryOp& op, std::int64_t n, const float* x, float* y);
void map_backward(const UnaryOp& op, std::int64_t n, const float* x, const float* y,
                  const float* y_grad, float* x_grad);
void zip(const BinaryOp& op, std::int64_t n, const ZipArrays& arrays);
// The same arrays from element `by` on.
ZipArrays advanced(const ZipArrays& arrays, std::int64_t by);
// y = alpha x + beta y.
inline void axpby(std::int64_t n, float alpha, const float* x, float beta, float* y) {
  zip({BinaryKind::kSum, alpha, beta}, n, {x, y, y});
}
void fill(std::int64_t n, float value, float* y);

float sum(std::int64_t n, const float* x);

// The kind kPower of map() and map_backward().
void power(const UnaryOp& op, std::int64_t n, const float* x, float* y);
void power_backward(const UnaryOp& op, std::int64_t n, const float* x, const float* y_grad,
                    float* x_grad);

void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                float* grad);
void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history, float* grad);
void adaptive_update(std::int64_t n, const AdaptiveStep& step, const float* weights,
                     AdaptiveHistories histories, float* grad);
void adaptive_step(std::int64_t n, const AdaptiveStep& step, float* weights,
                   AdaptiveHistories histories, float* grad);
// The same histories from element `by` on.
inline AdaptiveHistories advanced(AdaptiveHistories histories, std::int64_t by) {
  return {histories.first + by, histories.second == nullptr ? nullptr : histories.second + by};
}

// Divided over the pool's threads. The same result with any number of them.

double reduce(ThreadPool& pool, ReduceOp op, std::int64_t n, const float* x, const float* y);
void reduce_rows(ThreadPool& pool, ReduceOp op, const Backend::RowsShape& shape, float scale,
                 const float* x, float* y);
// Adds the sum of each column.
void sum_rows(ThreadPool& pool, std::int64_t rows, std::int64_t columns, const float* x,
              float* sum);

}  // namespace speedo::cpu
