#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>

#include "train/replicas/step_layout.hpp"

namespace speedo {

// Makes the gradient that a step stands for in a gradient arena of a device. Thread safety: one
// thread at a time.
class StepGradient {
 public:
  explicit StepGradient(Backend& backend) : backend_(backend) {}

  // Of the elements `part` of the arena, which are whole parameters where they are factors, or
  // nothing of them. `values`: the step's record on the host, whose elements for `part` are there.
  // Error: kFull.
  Result<void> form(const StepLayout& step, const Bucket& part, std::span<const float> values,
                    float* gradients);

 private:
  void form_values(const StepLayout& step, std::size_t piece, const Bucket& part,
                   std::span<const float> values, float* gradients);
  Result<void> form_product(const StepLayout& step, std::size_t piece,
                            std::span<const float> values, float* gradients);
  std::span<const float> gather(const StepLayout& step, std::size_t piece,
                                std::span<const float> values);

  Result<void> make_room(std::size_t count);

  Backend& backend_;
  // Of each piece that is a product all left factors, then all right ones. A device may read them
  // after this returns, so no piece has another's place.
  std::vector<std::vector<float>> gathered_;
  Arena factors_;  // of one piece, on a device with memory of its own
};

}  // namespace speedo
