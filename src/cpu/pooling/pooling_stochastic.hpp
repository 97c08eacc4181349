#pragma once

#include <cstdint>

#include <speedo/backend/operations.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Stochastic pooling of plain images; contracts as in Backend.

void sample_windows(ThreadPool& pool, const PoolingShape& shape, std::uint64_t seed,
                    const float* src, float* dst, float* winners);
void sample_windows_backward(ThreadPool& pool, const PoolingShape& shape, const float* winners,
                             const float* dst_grad, float* src_grad);
void weigh_windows(ThreadPool& pool, const PoolingShape& shape, const float* src, float* dst);
void weigh_windows_backward(ThreadPool& pool, const PoolingShape& shape, const float* src,
                            const float* dst, const float* dst_grad, float* src_grad);

}  // namespace speedo::cpu
