#pragma once

#include <cstdint>

#include <speedo/backend/layout.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// As Backend::dropout_mask(), divided over the pool's threads.
void dropout_mask(ThreadPool& pool, const ChannelView& view, float ratio, std::uint64_t seed,
                  float* mask);

}  // namespace speedo::cpu
