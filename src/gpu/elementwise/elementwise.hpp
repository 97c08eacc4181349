#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <speedo/backend/binary_op.hpp>
#include <speedo/backend/element_type.hpp>
#include <speedo/backend/layout.hpp>
#include <speedo/backend/reduce_op.hpp>
#include <speedo/backend/unary_op.hpp>
#include <speedo/backend/update_step.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// Arithmetic of arrays, as Backend has it, queued. Counts of 0 queue nothing.

void copy(Queue& queue, Elements n, const float* x, float* y);
void fill(Queue& queue, Elements n, float value, float* x);

void map(Queue& queue, const UnaryOp& op, Elements n, const float* x, float* y);
struct MapGradient {
  const float* x;  // may be null where backward_reads(op) does not name it; so may y
  const float* y;
  const float* y_grad;
  float* x_grad;
};
void map_backward(Queue& queue, const UnaryOp& op, Elements n, const MapGradient& arrays);
void zip(Queue& queue, const BinaryOp& op, Elements n, const ZipArrays& arrays);
struct SummedGradient {
  const float* y;  // may be null without f
  float* x_grad;
};
void sum_gradients(Queue& queue, const std::optional<UnaryOp>& f, Elements n,
                   std::span<const float* const> gradients, const SummedGradient& arrays);

// Writes the result to a number in the device's memory, not of the queue's scratch.
void reduce(Queue& queue, ReduceOp op, Elements n, const float* x, const float* y,
            double* result);

// Rows of elements, `stride` apart.
struct RowsFrom {
  const float* first;
  std::int64_t stride;
};
struct RowsTo {
  float* first;
  std::int64_t stride;
};
void copy_rows(Queue& queue, std::int64_t rows, Elements columns, RowsFrom from, RowsTo to);

void dropout_mask(Queue& queue, const ChannelView& view, float ratio, std::uint64_t seed,
                  float* mask);

// The update rules. `weights` of a step are changed, those of an update read. Each range has the
// step's rate and decays of its own.
using UpdateRanges = std::span<const UpdateRange>;
void sgd_update(Queue& queue, UpdateRanges ranges, const SgdStep& step, const float* weights,
                float* history, float* grad);
void sgd_step(Queue& queue, UpdateRanges ranges, const SgdStep& step, float* weights,
              float* history, float* grad);
void adaptive_update(Queue& queue, UpdateRanges ranges, const AdaptiveStep& step,
                     const float* weights, AdaptiveHistories histories, float* grad);
void adaptive_step(Queue& queue, UpdateRanges ranges, const AdaptiveStep& step, float* weights,
                   AdaptiveHistories histories, float* grad);

}  // namespace speedo::gpu
