#pragma once

#include <speedo/backend/layout.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Copies an array between layouts; padding becomes zero. The first form works on the calling
// thread.
void reorder(const ArrayShape& shape, const float* source, Layout from, float* target, Layout to);
void reorder(ThreadPool& pool, const ArrayShape& shape, const float* source, Layout from,
             float* target, Layout to);

// An array in plain order: `source` itself if it lies so, else its copy at `copy`, which the pool
// makes, or the calling thread where there is none.
const float* in_plain_order(ThreadPool* pool, const ArrayShape& shape, const float* source,
                            Layout from, float* copy);

}  // namespace speedo::cpu
