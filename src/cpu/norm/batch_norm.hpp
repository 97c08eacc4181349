#pragma once

#include <memory>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "cpu/memory.hpp"
#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// The same result with any number of threads. The pool and the scratch outlive the operation.
BackwardReads batch_norm_reads(const BatchNormShape& shape);

Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape, ThreadPool& pool,
                                                   Scratch& scratch);

}  // namespace speedo::cpu
