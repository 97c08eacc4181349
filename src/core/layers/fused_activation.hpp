#pragma once

#include <optional>

#include <speedo/core/layer.hpp>

namespace speedo {

// The activation behind a layer that the layer applies in its own forward pass.
class FusedActivation {
 public:
  // Takes that of the layer which follows, once; the same offer gets the same answer.
  Fused take(const Layer& next, const FusionTerms& terms) {
    if (!terms.forward_alone || !next.activation()) return {};
    if (of_ == nullptr) of_ = &next;
    return {.forward = of_ == &next, .backward = false};
  }
  std::optional<UnaryOp> op() const { return of_ == nullptr ? std::nullopt : of_->activation(); }

 private:
  const Layer* of_ = nullptr;
};

}  // namespace speedo
