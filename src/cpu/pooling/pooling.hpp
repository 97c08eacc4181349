#pragma once

#include <memory>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "cpu/memory.hpp"
#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// The pool and the scratch outlive the operation.
Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape, ThreadPool& pool,
                                              Scratch& scratch);

}  // namespace speedo::cpu
