#pragma once

#include <cstdint>

#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// Passes whose windows' size and step the compiler knows: 2 x 2 by steps of 2, 3 x 3 by steps of 2
// and of 1; of arrays whose neighbours in memory are channels, 16 bytes of them at least, none of
// them padding. Results are those of the other kernels to the bit. False: nothing was queued, since
// the shape is another one, or an array is not aligned.
// winners: a byte of each maximum, the tap; null, if they are not asked for.
bool queue_fixed_maxima(Queue& queue, const PoolingShape& shape, const float* src, float* dst,
                        std::uint8_t* winners);
// Of averages, no winners are read.
bool queue_fixed_backward(Queue& queue, const PoolingShape& shape, const std::uint8_t* winners,
                          const float* dst_grad, float* src_grad);

}  // namespace speedo::gpu
