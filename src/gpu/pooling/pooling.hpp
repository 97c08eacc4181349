#pragma once

#include <memory>

#include <speedo/backend/device.hpp>
#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

BackwardReads pooling_reads(const PoolingShape& shape);

// `queue` and `device`, in whose memory it keeps where maxima were, outlive it.
// Error: kFull.
Result<std::unique_ptr<Pooling>> make_pooling(Queue& queue, Device& device,
                                              const PoolingShape& shape);

}  // namespace speedo::gpu
