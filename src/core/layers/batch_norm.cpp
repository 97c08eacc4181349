#include "core/layers/batch_norm.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"
#include "core/layers/eltwise.hpp"
#include "core/layers/scale.hpp"
#include "core/layers/support.hpp"

namespace speedo {
namespace {

// The parameters.
constexpr int kMeanSum = 0, kVarianceSum = 1, kWeight = 2;

}  // namespace

Result<void> BatchNormLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().batch_norm_param();
  const Shape& bottom = bottoms[0]->shape();
  uses_global_ =
      options.has_use_global_stats() ? options.use_global_stats() : context.phase == Phase::kTest;
  channels_ = bottom.axes() > 1 ? bottom[1] : 1;
  is_in_place_ = tops[0] == bottoms[0];
  // Written so that a NaN is refused too.
  if (!(options.eps() >= 0.0F)) {
    return error(fmt::format("eps is {}, it must not be negative", options.eps()));
  }
  const float fraction = options.moving_average_fraction();
  if (!(fraction >= 0.0F && fraction <= 1.0F)) {
    return error(fmt::format("moving_average_fraction is {}, it must be from 0 to 1", fraction));
  }
  request_statistic({channels_});
  request_statistic({channels_});
  request_statistic({1});
  return {};
}

Result<void> BatchNormLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  if (bottom.count() == 0) return error(fmt::format("bottom {} is empty", to_string(bottom)));
  const std::int64_t channels = bottom.axes() > 1 ? bottom[1] : 1;
  if (channels != channels_) {
    return error(fmt::format("has statistics of {} channels, its bottom ({}) has {}", channels_,
                             to_string(bottom), channels));
  }
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottom);
  return {};
}

// With a top of its own, the top's gradient would stay the one behind the layers fused, which shows
// where gradients are looked at.
Fused BatchNormLayer::fuse(Layer& next, const FusionTerms& terms) {
  if (context().keep_blobs && !is_in_place_) return {};
  if (terms.joins) return terms.with_backward ? fuse_sum(next) : Fused{};
  auto* const scale = dynamic_cast<ScaleLayer*>(&next);
  if (scale == nullptr) return fuse_activation(next, terms);
  constexpr Fused kBoth{.forward = true, .backward = true};
  if (!terms.with_backward) return {};
  if (scale == scale_) return kBoth;
  if (scale_ != nullptr || sum_ != nullptr || activation_ != nullptr) return {};
  if (!scale->is_learned_per_channel()) return {};
  scale_ = scale;
  return kBoth;
}

Fused BatchNormLayer::fuse_sum(Layer& next) {
  auto* const sum = dynamic_cast<EltwiseLayer*>(&next);
  const bool is_known = sum != nullptr && sum == sum_;
  if (!is_known) {
    if (sum == nullptr || sum_ != nullptr || activation_ != nullptr) return {};
    if (!sum->is_plain_sum() || !backend().adds(Producer::kBatchNorm)) return {};
    sum_ = sum;
  }
  return {.forward = true, .backward = true};
}

// In place, what the activation reads is gone when backward() needs it. Behind a sum the slope has
// to be applied for both parts, so the activation does it.
Fused BatchNormLayer::fuse_activation(Layer& next, const FusionTerms& terms) {
  const bool is_allowed = sum_ != nullptr ? terms.forward_alone : terms.with_backward;
  if (!is_allowed || (activation_ != nullptr && &next != activation_)) return {};
  const std::optional<UnaryOp> op = next.activation();
  if (!op || backward_reads(*op).src || !backend().fuses(Producer::kBatchNorm, *op)) return {};
  activation_ = &next;
  return {.forward = true, .backward = sum_ == nullptr};
}

Result<void> BatchNormLayer::prepare(Tensors bottoms, Tensors tops, bool trains) {
  const ArrayShape array = bottoms[0]->array_shape();
  BatchNormShape shape;
  shape.batch = array.batch;
  shape.channels = array.channels;
  shape.spatial = array.spatial;
  shape.epsilon = parameter_message().batch_norm_param().eps();
  if (activation_ != nullptr) shape.activation = activation_->activation();
  shape.layout = bottoms[0]->layout();
  shape.is_fixed = uses_global_;
  shape.trains = trains;
  shape.trains_gamma = scale_ != nullptr && scale_->trains_scale();
  shape.adds = sum_ != nullptr;
  SPEEDO_ASSIGN(operation_, backend().make_batch_norm(shape));
  if (!context().plan_only) SPEEDO_TRY(operation_->take_memory());
  reads_ = backend().backward_reads(shape);
  for (Tensor* statistic : {&mean_, &variance_}) {
    statistic->reshape({channels_});
    SPEEDO_TRY(allocate(*statistic));
  }
  copy_.plan(trains && tops[0] == bottoms[0] && reads_.src, *bottoms[0]);
  return copy_.is_kept() ? allocate(copy_.tensor()) : Result<void>();
}

OperationInfo BatchNormLayer::info() const {
  return operation_ ? operation_->info() : OperationInfo{};
}

std::int64_t BatchNormLayer::workspace_bytes() const {
  return bytes_of(mean_) + bytes_of(variance_) + copy_.bytes();
}

const float* BatchNormLayer::gamma() const { return scale_ != nullptr ? scale_->scale() : nullptr; }

const float* BatchNormLayer::beta() const { return scale_ != nullptr ? scale_->bias() : nullptr; }

void BatchNormLayer::read_running_statistics() {
  backend().read_running({.channels = channels_,
                          .mean_sum = parameter(kMeanSum).data(),
                          .variance_sum = parameter(kVarianceSum).data(),
                          .weight = parameter(kWeight).data(),
                          .mean = mean_.data(),
                          .variance = variance_.data()});
}

void BatchNormLayer::add_to_running_statistics(std::int64_t count) {
  const auto m = static_cast<float>(count);
  backend().add_to_running(
      {.channels = channels_,
       .fraction = parameter_message().batch_norm_param().moving_average_fraction(),
       .correction = count > 1 ? m / (m - 1.0F) : 1.0F,
       .mean = mean_.data(),
       .variance = variance_.data(),
       .mean_sum = parameter(kMeanSum).data(),
       .variance_sum = parameter(kVarianceSum).data(),
       .weight = parameter(kWeight).data()});
}

Result<void> BatchNormLayer::forward(Tensors bottoms, Tensors tops) {
  copy_.save(backend(), *bottoms[0]);
  const float* bottom = copy_.values(*bottoms[0]);
  if (sum_ != nullptr) operation_->add_next(bottoms[kAddend]->data());
  if (uses_global_) {
    read_running_statistics();
    operation_->forward_fixed(bottom, mean_.data(), variance_.data(), gamma(), beta(),
                              tops[0]->data());
    return {};
  }
  operation_->forward(bottom, gamma(), beta(), mean_.data(), variance_.data(), tops[0]->data());
  add_to_running_statistics(bottoms[0]->count() / channels_);
  return {};
}

void BatchNormLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  // Layers are fused only where their gradients go on down.
  SPEEDO_ASSERT(propagate[0] || (scale_ == nullptr && sum_ == nullptr && activation_ == nullptr));
  if (!propagate[0]) return;
  if (sum_ != nullptr && propagate[kAddend] && bottoms[kAddend]->grad() != tops[0]->grad()) {
    backend().copy(tops[0]->elements(), tops[0]->grad(), bottoms[kAddend]->grad());
  }
  operation_->backward({.src = copy_.values(*bottoms[0]),
                        .dst = tops[0]->data(),
                        .dst_grad = tops[0]->grad(),
                        .mean = mean_.data(),
                        .variance = variance_.data(),
                        .gamma = gamma(),
                        .src_grad = bottoms[0]->grad(),
                        .gamma_grad = scale_ != nullptr ? scale_->scale_grad() : nullptr,
                        .beta_grad = scale_ != nullptr ? scale_->bias_grad() : nullptr});
}

}  // namespace speedo
