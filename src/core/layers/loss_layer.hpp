#pragma once

#include <cstdint>
#include <optional>

#include <speedo/core/layer.hpp>

namespace caffe {
class LossParameter;
}

namespace speedo {

// What losses share: top 0 is a scalar of weight 1, added where the prototxt names no top; the
// gradient goes to the scores, bottom 0, and not to the labels; both have the same items.
class LossLayer : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 1, 1}; }
  bool auto_tops() const override { return true; }
  float default_loss_weight(int top) const override { return top == 0 ? 1.0F : 0.0F; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }
  bool can_propagate(int bottom) const override { return bottom == 0; }
  bool backward_reads_top(int) const override { return false; }

 protected:
  // How many items bottoms 0 and 1 have along their first axes; top 0 becomes a scalar. Error:
  // kConfig, unless both have as many.
  Result<std::int64_t> reshape_items(Tensors bottoms, Tensors tops);
  // For a loss that is a mean over items. Error: kConfig, unless bottom 0 has any.
  Result<void> check_some(Tensors bottoms) const;
  // Error: kConfig, unless bottom 1 has one label for each of `items`.
  Result<void> check_label_count(Tensors bottoms, std::int64_t items) const;
};

// How many labels a loss has seen.
struct LossCounts {
  std::int64_t outer = 0, inner = 0;  // rows, and labels of each
  std::int64_t valid = 0;             // that were not ignored
};

// What a loss does where loss_param says nothing of normalization.
enum class DefaultNormalization { kValid, kBatchSize };

// What the sum of a loss is divided by, at least 1. Division by zero labels would turn a fully
// ignored batch into NaN.
double loss_normalizer(const caffe::LossParameter& options, DefaultNormalization otherwise,
                       const LossCounts& counts);

// The same before anything was counted; nothing: it is the count of those that were not ignored.
std::optional<double> fixed_normalizer(const caffe::LossParameter& options,
                                       DefaultNormalization otherwise, const LossCounts& counts);

std::optional<int> ignored_label(const caffe::LossParameter& options);

}  // namespace speedo
