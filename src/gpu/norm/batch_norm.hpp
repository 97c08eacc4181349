#pragma once

#include <memory>

#include <speedo/backend/device.hpp>
#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// The activations that a normalization applies: those whose slope its backward pass knows.
inline bool batch_norm_fuses(const UnaryOp& activation) {
  return activation.kind == UnaryKind::kRelu;
}
BackwardReads batch_norm_reads(const BatchNormShape& shape);

// `queue` and `device`, whose memory it keeps its coefficients in, outlive the operation.
std::unique_ptr<BatchNorm> make_batch_norm(Queue& queue, Device& device,
                                           const BatchNormShape& shape);

}  // namespace speedo::gpu
