#pragma once

#include <memory>

#include <speedo/backend/operations.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Pooling of arrays whose block is not 1: what is done to a number is done to a whole row of
// channels. The pool outlives the operation.
std::unique_ptr<Pooling> make_block_pooling(const PoolingShape& shape, ThreadPool& pool);

}  // namespace speedo::cpu
