#pragma once

#include <speedo/backend/backend.hpp>

#include "core/layers/loss_layer.hpp"
#include "core/layers/queued_loss_sums.hpp"
#include "core/layers/support.hpp"

namespace speedo {

// What losses share that compare the softmax of bottom 0 with the classes that labels, bottom 1,
// name, and divide by a normalizer: the count of labels that are not ignored (the default), of all
// labels, of rows, or 1; never less than 1. The optional top 1 is the softmax.
class ClassLossLayer : public LossLayer {
 public:
  using LossLayer::LossLayer;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_top(int top) const override { return top == 1; }
  std::int64_t workspace_bytes() const override {
    return sums_.bytes() + (shares_top_ ? 0 : bytes_of(probability_));
  }

 protected:
  // Along this axis of bottom 0. Error: kConfig.
  Result<void> reshape_classes(int axis, Tensors bottoms, Tensors tops);
  // Of the last forward(), which sets `valid_count_`.
  double normalizer() const;

  // For DeviceSteps.
  QueuedLoss queued_loss(Tensors tops);

  Backend::SoftmaxShape shape_{};
  Tensor probability_;
  std::int64_t valid_count_ = 0;

 private:
  bool shares_top_ = false;  // top 1 holds the probabilities
  QueuedLossSums sums_;
};

}  // namespace speedo
