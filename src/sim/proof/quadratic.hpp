#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <speedo/core/parameter_arena.hpp>

namespace speedo::sim {

// A training problem with a known answer: half the sum of c_i (x_i - t_i)^2, whose gradient every
// batch of the data disturbs in its own way.
class Quadratic {
 public:
  Quadratic(std::uint64_t seed, std::size_t elements, float noise);

  std::size_t size() const { return target_.size(); }
  const ParameterLayout& layout() const { return layout_; }
  std::vector<float> start() const { return std::vector<float>(size(), 0.0F); }
  // Adds the gradient at x by one batch. Returns the loss.
  float add_gradient(std::span<const float> x, std::uint64_t batch,
                     std::span<float> gradient) const;
  double distance(std::span<const float> x) const;  // to the answer

 private:
  std::uint64_t seed_;
  float noise_;
  std::vector<float> target_, curvature_;
  ParameterLayout layout_;
};

}  // namespace speedo::sim
