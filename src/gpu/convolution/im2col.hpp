#pragma once

#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// As in Backend, queued.
void unfold(Queue& queue, const ConvolutionShape& shape, const float* src, float* matrices);
void fold(Queue& queue, const ConvolutionShape& shape, const float* matrices, float* src);

}  // namespace speedo::gpu
