#pragma once

#include <speedo/backend/layout.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// As Backend::reorder(), queued.
void reorder(Queue& queue, const ArrayShape& shape, const float* source, Layout from, float* target,
             Layout to);
// target += the source in plain order, which has no padding.
void add_reordered(Queue& queue, const ArrayShape& shape, const float* source, Layout from,
                   float* target);

}  // namespace speedo::gpu
