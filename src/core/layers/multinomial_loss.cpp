#include "core/layers/multinomial_loss.hpp"

#include <algorithm>
#include <cmath>

#include <speedo/backend/backend.hpp>
#include <speedo/backend/labels.hpp>

#include "core/layers/bad_label.hpp"
#include "core/layers/support.hpp"

namespace speedo {

namespace {

// Caffe's kLOG_THRESHOLD.
constexpr float kProbabilityMin = 1e-20F;

}  // namespace

Result<void> MultinomialLossLayer::reshape(Tensors bottoms, Tensors tops) {
  SPEEDO_ASSIGN(items_, reshape_items(bottoms, tops));
  SPEEDO_TRY(check_some(bottoms));
  SPEEDO_TRY(check_label_count(bottoms, items_));
  classes_ = bottoms[0]->shape().count(1);
  return {};
}

Result<void> MultinomialLossLayer::forward(Tensors bottoms, Tensors tops) {
  values_.resize(static_cast<std::size_t>(bottoms[0]->count()));
  labels_.resize(static_cast<std::size_t>(items_));
  backend().device().download(values_, bottoms[0]->data());
  backend().device().download(labels_, bottoms[1]->data());
  places_.clear();
  chosen_.clear();
  double sum = 0.0;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    const std::int64_t label = label_index(labels_[i], classes_);
    if (label < 0) {
      return error(describe_bad_label(labels_[i], static_cast<std::int64_t>(i), classes_,
                                      LabelsIgnored::kNever),
                   ErrorCode::kData);
    }
    places_.push_back(i * static_cast<std::size_t>(classes_) + static_cast<std::size_t>(label));
    const float probability = values_[places_.back()];
    // A NaN stays one.
    chosen_.push_back(probability < kProbabilityMin ? kProbabilityMin : probability);
    sum -= std::log(static_cast<double>(chosen_.back()));
  }
  put_value(backend(), static_cast<float>(sum / static_cast<double>(items_)), tops[0]->data());
  return {};
}

void MultinomialLossLayer::backward(Tensors tops, const std::vector<bool>& propagate,
                                    Tensors bottoms) {
  if (!propagate[0]) return;
  const float scale = -get_value(backend(), tops[0]->grad()) / static_cast<float>(items_);
  std::fill(values_.begin(), values_.end(), 0.0F);
  for (std::size_t i = 0; i < places_.size(); ++i) values_[places_[i]] = scale / chosen_[i];
  backend().device().upload(bottoms[0]->grad(), values_);
}

}  // namespace speedo
