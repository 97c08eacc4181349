#pragma once

#include <cstddef>
#include <span>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>

#include "train/replicas/packed_gradient.hpp"

namespace speedo {

// Makes the gradient that a step stands for in a gradient arena of a device. Thread safety: one
// thread at a time.
class StepGradient {
 public:
  explicit StepGradient(Backend& backend) : backend_(backend) {}

  // Of the elements `part` of the arena, which are whole parameters where they are factors, or
  // nothing of them. `values`: the step's record on the host, whose elements for `part` are there.
  // Error: kFull.
  Result<void> form(const PackedGradient& step, const Bucket& part, std::span<const float> values,
                    float* gradients);

 private:
  Result<void> form_product(const PackedGradient::Piece& piece, std::size_t contributions,
                            std::span<const float> values, float* gradients);

  Backend& backend_;
  Arena factors_;  // on a device with memory of its own
};

}  // namespace speedo
