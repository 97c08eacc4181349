#pragma once

#include <cstdint>

#include <speedo/backend/backend.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Vectors of n elements on the calling thread; contracts as in Backend.

void axpby(std::int64_t n, float alpha, const float* x, float beta, float* y);
void multiply(std::int64_t n, const float* a, const float* b, float* y);
void divide(std::int64_t n, const float* a, const float* b, float* y);
void square(std::int64_t n, const float* x, float* y);
void power(std::int64_t n, const float* x, float exponent, float* y);
void add_scalar(std::int64_t n, float value, float* y);
void fill(std::int64_t n, float value, float* y);

float sum(std::int64_t n, const float* x);

void map(const UnaryOp& op, std::int64_t n, const float* x, float* y);
void map_backward(const UnaryOp& op, std::int64_t n, const float* x, const float* y,
                  const float* y_grad, float* x_grad);
// `seed` is that of the first element of this part.
void dropout_mask(std::int64_t n, float ratio, std::uint64_t seed, float* mask);
void max_forward(std::int64_t n, const float* a, const float* b, bool first, float b_index,
                 float* mask, float* y);
void max_backward(std::int64_t n, const float* mask, float index, const float* y_grad,
                  float* x_grad);
void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                float* grad);
void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history, float* grad);

// Divided over the pool's threads. The same result with any number of them.

double dot(ThreadPool& pool, std::int64_t n, const float* x, const float* y);
double sum_abs(ThreadPool& pool, std::int64_t n, const float* x);
bool all_finite(ThreadPool& pool, std::int64_t n, const float* x);
void add_row(ThreadPool& pool, std::int64_t rows, std::int64_t columns, const float* bias,
             float* y);
void sum_rows(ThreadPool& pool, std::int64_t rows, std::int64_t columns, const float* x,
              float* sum);

}  // namespace speedo::cpu
