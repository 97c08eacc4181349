#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <speedo/backend/backend.hpp>

#include "support/reference/reference_backend.hpp"

namespace speedo::test {

// What a batch normalization is given, plain; null as there. Statistics are read if they are fixed.
struct NormInputs {
  const float* x;
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
};

// Makes gradients 0 where the shape's ReLU might let them through or not: what is so close to its
// edge lies on either side by rounding alone. Behind a sum it is not the backward pass' concern.
inline void clear_at_relu_edge(BatchNormShape shape, const NormInputs& on,
                               std::vector<float>& gradients) {
  if (!shape.activation || shape.adds) return;
  shape.layout = {};
  shape.activation.reset();
  const auto reference = make_reference_backend();
  const auto norm = reference->make_batch_norm(shape).value();
  std::vector<float> y(gradients.size());
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<float> mean(channels), variance(channels);
  if (shape.is_fixed) {
    norm->forward_fixed(on.x, on.mean, on.variance, on.gamma, on.beta, y.data());
  } else {
    norm->forward(on.x, on.gamma, on.beta, mean.data(), variance.data(), y.data());
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (std::abs(y[i]) < 1e-4F) gradients[i] = 0.0F;
  }
}

}  // namespace speedo::test
