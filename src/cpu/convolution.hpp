#pragma once

#include <memory>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "cpu/memory.hpp"
#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Convolution by im2col and matrix products. Samples are divided over threads; where the output is
// small, several samples share one product, which would otherwise mostly pack its operands.
// The pool and the scratch outlive it.
Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape,
                                                      ThreadPool& pool, Scratch& scratch);

}  // namespace speedo::cpu
