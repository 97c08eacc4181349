#include "sim/proof/quadratic.hpp"

#include <cmath>
#include <utility>

#include <speedo/base/random.hpp>

namespace speedo::sim {

Quadratic::Quadratic(std::uint64_t seed, std::size_t elements, float noise)
    : seed_(seed), noise_(noise) {
  Random random = Random::derive(seed, {0x9AD});
  for (std::size_t i = 0; i < elements; ++i) {
    target_.push_back(random.uniform(-1.0F, 1.0F));
    curvature_.push_back(random.uniform(0.2F, 1.0F));
  }
  ParameterSlot slot;
  slot.layer = "quadratic";
  slot.shape = Shape{static_cast<std::int64_t>(elements)};
  layout_.add(std::move(slot));
}

float Quadratic::add_gradient(std::span<const float> x, std::uint64_t batch,
                              std::span<float> gradient) const {
  const std::uint64_t stream = mix64(seed_ ^ mix64(batch));
  double loss = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float away = x[i] - target_[i];
    const auto bits = static_cast<std::uint32_t>(mix64(stream + i) >> 40U);
    const float unit = static_cast<float>(bits) / static_cast<float>(1U << 24U);
    gradient[i] += curvature_[i] * away + noise_ * (unit - 0.5F);
    loss += 0.5 * curvature_[i] * away * away;
  }
  return static_cast<float>(loss);
}

double Quadratic::distance(std::span<const float> x) const {
  double sum = 0.0;
  for (std::size_t i = 0; i < target_.size(); ++i) {
    sum += (x[i] - target_[i]) * (x[i] - target_[i]);
  }
  return std::sqrt(sum);
}

}  // namespace speedo::sim
