// Which layers and bottoms take part in the backward pass: those between a parameter that is
// trained and a loss. Caffe's rules, including what propagate_down and force_backward change.
#include <set>

#include <fmt/format.h>

#include "core/net_impl.hpp"

namespace speedo {

// Forwards through the net: a layer needs the backward pass if it or anything before it is trained.
void Net::Impl::mark_needs_backward(const caffe::LayerParameter& message, std::size_t layer) {
  LayerView& view = views[layer];
  LayerWiring& wires = wiring[layer];
  view.needs_backward = false;
  for (std::size_t i = 0; i < wires.bottoms.size(); ++i) {
    const bool wanted = blobs[wires.bottoms[i]].needs_backward;
    view.needs_backward = view.needs_backward || wanted;
    view.propagate.push_back(
        message.propagate_down_size() > 0 ? message.propagate_down(static_cast<int>(i)) : wanted);
  }
  const std::size_t parameter_count = view.layer->parameter_requests().size();
  for (std::size_t i = 0; i < parameter_count; ++i) {
    const int index = static_cast<int>(i);
    const bool trained = index >= message.param_size() || message.param(index).lr_mult() != 0.0F;
    wires.parameter_needs_grad.push_back(trained);
    view.needs_backward = view.needs_backward || trained;
  }
  if (view.needs_backward) {
    for (const std::size_t top : wires.tops) {
      blobs[top].needs_backward = true;
    }
  }
}

// Backwards through the net: what no loss depends on, and what propagate_down cuts off, needs
// nothing. Blobs go by name, so that the uses of one in-place chain count as one.
void Net::Impl::prune_layers_without_loss() {
  std::set<std::string> under_loss;
  std::set<std::string> cut_off;
  for (std::size_t layer = views.size(); layer-- > 0;) {
    LayerView& view = views[layer];
    bool has_loss = false;
    bool is_cut_off = true;
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      const std::string& top = blobs[wiring[layer].tops[i]].name;
      has_loss = has_loss || wiring[layer].loss_weights[i] != 0.0F || under_loss.count(top) > 0;
      is_cut_off = is_cut_off && cut_off.count(top) > 0;
    }
    if (view.needs_backward && is_cut_off) {
      view.needs_backward = false;
      view.propagate.assign(view.propagate.size(), false);
    }
    view.needs_backward = view.needs_backward && has_loss;
    for (std::size_t i = 0; i < view.propagate.size(); ++i) {
      const std::string& bottom = blobs[wiring[layer].bottoms[i]].name;
      if (has_loss) {
        under_loss.insert(bottom);
      } else {
        view.propagate[i] = false;
      }
      if (!view.propagate[i]) {
        cut_off.insert(bottom);
      }
    }
  }
}

void Net::Impl::force_backward() {
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    LayerView& view = views[layer];
    view.needs_backward = true;
    for (std::size_t i = 0; i < view.propagate.size(); ++i) {
      const int index = static_cast<int>(i);
      view.propagate[i] = view.propagate[i] || (view.layer->allow_force_backward(index) &&
                                                view.layer->can_propagate(index));
    }
    auto& trained = wiring[layer].parameter_needs_grad;
    trained.assign(trained.size(), true);
  }
}

// A label cannot have a gradient. A training net that needs one there is a mistake; a test net is
// not differentiated, so there the wish is dropped.
Result<void> Net::Impl::check_propagation() {
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    LayerView& view = views[layer];
    for (std::size_t i = 0; i < view.propagate.size(); ++i) {
      if (!view.needs_backward || !view.propagate[i] ||
          view.layer->can_propagate(static_cast<int>(i))) {
        continue;
      }
      if (options.phase == Phase::kTrain) {
        return layer_error(messages[layer],
                           fmt::format("bottom '{}' depends on trained parameters, but this layer "
                                       "cannot propagate a gradient to it; set propagate_down: "
                                       "false there",
                                       view.bottom_names[i]));
      }
      view.propagate[i] = false;
    }
  }
  return {};
}

// Gradients are read at the tops of a layer that runs backward, and written where it propagates.
void Net::Impl::mark_gradient_blobs() {
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    for (std::size_t i = 0; i < views[layer].tops.size(); ++i) {
      Blob& blob = blobs[wiring[layer].tops[i]];
      blob.needs_grad =
          blob.needs_grad || views[layer].needs_backward || wiring[layer].loss_weights[i] != 0.0F;
    }
    for (std::size_t i = 0; i < views[layer].propagate.size(); ++i) {
      Blob& blob = blobs[wiring[layer].bottoms[i]];
      blob.needs_grad =
          blob.needs_grad || (views[layer].needs_backward && views[layer].propagate[i]);
    }
  }
}

}  // namespace speedo
