#include "core/layers/contrastive_loss.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

// Items of features, N x C, or N x C x 1 x 1.
bool is_vectors(const Shape& shape) { return shape.axes() < 3 || shape.count(2) == 1; }

}  // namespace

Result<void> ContrastiveLossLayer::reshape(Tensors bottoms, Tensors tops) {
  SPEEDO_ASSIGN(pairs_, reshape_items(bottoms, tops));
  SPEEDO_TRY(check_some(bottoms));
  const Shape& a = bottoms[0]->shape();
  const Shape& b = bottoms[1]->shape();
  features_ = a.count(1);
  if (!is_vectors(a) || !is_vectors(b) || b.count(1) != features_) {
    return error(
        fmt::format("its first two bottoms must be pairs of vectors of one length, "
                    "N x C or N x C x 1 x 1; they are {} and {}",
                    to_string(a), to_string(b)));
  }
  if (bottoms[2]->count() != pairs_) {
    return error(
        fmt::format("its third bottom must say of each of {} pairs whether it is similar, "
                    "its shape is {}",
                    pairs_, to_string(bottoms[2]->shape())));
  }
  difference_.reshape(a);
  per_pair_.reshape({pairs_});
  for (auto* values : {&squares_, &similar_, &factors_}) {
    values->resize(static_cast<std::size_t>(pairs_));
  }
  return {};
}

Result<void> ContrastiveLossLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
  SPEEDO_TRY(allocate(difference_));
  return allocate(per_pair_);
}

// Caffe cuts what says "similar" to a whole number, and keeps away from a distance of 0 where it
// divides by that.
ContrastiveLossLayer::PairLoss ContrastiveLossLayer::pair_loss(float similar, float square) const {
  constexpr double kDistanceMin = 1e-4;
  const auto& options = parameter_message().contrastive_loss_param();
  const double margin = options.margin(), squared = square;
  if (std::fabs(similar) >= 1.0F) return {squared, 1.0};
  // Both written so that a NaN is a loss.
  if (options.legacy_version()) {
    return margin <= squared ? PairLoss{0.0, 0.0} : PairLoss{margin - squared, -1.0};
  }
  const double distance = std::sqrt(squared);
  const double rest = margin - distance;
  if (rest <= 0.0) return {0.0, 0.0};
  return {rest * rest, -rest / (distance + kDistanceMin)};
}

Result<void> ContrastiveLossLayer::forward(Tensors bottoms, Tensors tops) {
  backend().zip({BinaryKind::kSum, 1.0F, -1.0F}, difference_.count(),
                {bottoms[0]->data(), bottoms[1]->data(), difference_.data()});
  backend().reduce_rows(ReduceOp::kSquareSum, {pairs_, features_}, 1.0F, difference_.data(),
                        per_pair_.data());
  backend().device().download(squares_, per_pair_.data());
  backend().device().download(similar_, bottoms[2]->data());
  double sum = 0.0;
  for (std::size_t i = 0; i < squares_.size(); ++i) {
    const PairLoss pair = pair_loss(similar_[i], squares_[i]);
    sum += pair.loss;
    factors_[i] = static_cast<float>(pair.factor);
  }
  const double loss = sum / static_cast<double>(pairs_) / 2.0;
  put_value(backend(), static_cast<float>(loss), tops[0]->data());
  return {};
}

void ContrastiveLossLayer::backward(Tensors tops, const std::vector<bool>& propagate,
                                    Tensors bottoms) {
  const float weight = get_value(backend(), tops[0]->grad()) / static_cast<float>(pairs_);
  const ChannelView pairs{{1, pairs_, features_}, {}};
  std::vector<float> scaled(factors_.size());
  for (std::size_t bottom = 0; bottom < 2; ++bottom) {
    if (!propagate[bottom]) continue;
    const float sign = bottom == 0 ? weight : -weight;
    std::transform(factors_.begin(), factors_.end(), scaled.begin(),
                   [sign](float factor) { return sign * factor; });
    backend().device().upload(per_pair_.data(), scaled);
    backend().scale_channels(pairs, {.gamma = per_pair_.data()}, difference_.data(),
                             bottoms[bottom]->grad());
  }
}

}  // namespace speedo
