#include "core/net/layer_traits.hpp"

#include <algorithm>

namespace speedo {
namespace {

using MayShare = bool (Layer::*)(int bottom, int top) const;

std::vector<std::vector<bool>> pairs_that_share(const Net::LayerView& view, MayShare may_share) {
  std::vector<std::vector<bool>> pairs;
  for (std::size_t b = 0; b < view.bottoms.size(); ++b) {
    std::vector<bool>& tops = pairs.emplace_back();
    for (std::size_t t = 0; t < view.tops.size(); ++t) {
      tops.push_back((view.layer->*may_share)(static_cast<int>(b), static_cast<int>(t)));
    }
  }
  return pairs;
}

std::vector<SharedTop> shared_tops(const Net::LayerView& view) {
  std::vector<SharedTop> shared;
  for (std::size_t t = 0; t < view.tops.size(); ++t) {
    const Tensor* top = view.tops[t];
    const bool is_in_place =
        std::find(view.bottoms.begin(), view.bottoms.end(), top) != view.bottoms.end();
    for (std::size_t b = 0; !is_in_place && b < view.bottoms.size(); ++b) {
      const Tensor* bottom = view.bottoms[b];
      if (top->data_identity() != bottom->data_identity()) continue;
      shared.push_back({t, b, top->grad_identity() == bottom->grad_identity()});
      break;
    }
  }
  return shared;
}

}  // namespace

BackwardTraits backward_traits(const Net::LayerView& view, const caffe::LayerParameter& message) {
  BackwardTraits traits;
  const auto parameter_count = static_cast<int>(view.layer->parameter_requests().size());
  for (int i = 0; i < parameter_count; ++i) {
    traits.trained.push_back(i >= message.param_size() || message.param(i).lr_mult() != 0.0F);
  }
  traits.propagate_down.assign(message.propagate_down().begin(), message.propagate_down().end());
  for (int i = 0; i < static_cast<int>(view.bottoms.size()); ++i) {
    traits.can_propagate.push_back(view.layer->can_propagate(i));
    traits.may_be_forced.push_back(view.layer->allow_force_backward(i));
  }
  return traits;
}

InPlaceTraits in_place_traits(const Net::LayerView& view) {
  const Layer& layer = *view.layer;
  return {layer.keeps_bottom(), layer.keeps_top(), layer.keeps_tops(), shared_tops(view)};
}

LayoutTraits layout_traits(const Net::LayerView& view, LayoutKind kind) {
  const bool is_float = layout_of(kind, 1).type == ElementType::kFloat32;
  const bool takes_kind = is_float || view.layer->takes_bfloat16();
  return {takes_kind ? view.layer->layout_rule() : LayoutRule::kPlain,
          view.layer->takes_plain_bottom(kind), shared_tops(view)};
}

MemoryTraits memory_traits(const Net::LayerView& view, bool trains) {
  const Layer& layer = *view.layer;
  MemoryTraits traits;
  traits.keeps_tops = layer.keeps_tops();
  if (!view.fused.forward) {
    traits.values_may_share = pairs_that_share(view, &Layer::values_may_share);
  }
  if (!trains || !view.needs_backward || view.fused.backward) return traits;
  traits.gradients_may_share = pairs_that_share(view, &Layer::gradients_may_share);
  for (std::size_t i = 0; i < view.bottoms.size(); ++i) {
    traits.backward_reads_bottom.push_back(layer.backward_reads_bottom(static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    traits.backward_reads_top.push_back(layer.backward_reads_top(static_cast<int>(i)));
  }
  return traits;
}

}  // namespace speedo
