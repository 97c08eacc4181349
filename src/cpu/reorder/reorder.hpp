#pragma once

#include <speedo/backend/layout.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Copies an array between layouts; padding becomes zero. The first form works on the calling
// thread.
void reorder(const ArrayShape& shape, const float* source, Layout from, float* target, Layout to);
void reorder(ThreadPool& pool, const ArrayShape& shape, const float* source, Layout from,
             float* target, Layout to);

}  // namespace speedo::cpu
