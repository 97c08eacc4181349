#pragma once

#include <cstdint>

#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// Stochastic pooling of plain images, as in Backend, queued.
void sample_windows(Queue& queue, const PoolingShape& shape, std::uint64_t seed, const float* src,
                    float* dst, float* winners);
void sample_windows_backward(Queue& queue, const PoolingShape& shape, const float* winners,
                             const float* dst_grad, float* src_grad);
void weigh_windows(Queue& queue, const PoolingShape& shape, const float* src, float* dst);
void weigh_windows_backward(Queue& queue, const PoolingShape& shape, const float* src,
                            const float* dst, const float* dst_grad, float* src_grad);

}  // namespace speedo::gpu
