#include "core/debug_info.hpp"

#include <cmath>
#include <string>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"

namespace speedo {
namespace {

double mean_of(const Tensor& tensor, double sum) {
  return tensor.count() == 0 ? 0.0 : sum / static_cast<double>(tensor.count());
}

// Padding holds zeros.
double mean_magnitude(Backend& backend, const Tensor& tensor) {
  return mean_of(tensor, backend.sum_abs(tensor.elements(), tensor.data()));
}

// Of the gradients themselves, without the scale that backward() gives them.
double mean_grad_magnitude(const Net& net, const Tensor& tensor) {
  return mean_of(tensor, net.backend().sum_abs(tensor.elements(), tensor.grad())) /
         static_cast<double>(net.gradient_scale());
}

// Caffe's display name of a parameter: its name if it is shared by name, else its index. One of a
// test net's own is in no layout.
std::string display_name(const Net& net, const Net::LayerView& view, std::size_t index) {
  if (view.slots.empty()) return std::to_string(index);
  const ParameterSlot& slot = net.layout().slots()[view.slots[index]];
  return slot.name.empty() ? std::to_string(index) : slot.name;
}

void log_forward(const Net& net, const Net::LayerView& view) {
  Backend& backend = net.backend();
  const std::string& layer = view.layer->name();
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    const Tensor& top = *view.tops[i];
    SPEEDO_INFO("    [Forward] Layer {}, top blob {} data: {:g}", layer, view.top_names[i],
                mean_magnitude(backend, top));
  }
  for (std::size_t i = 0; i < view.layer->parameters().size(); ++i) {
    const Tensor& parameter = *view.layer->parameters()[i];
    SPEEDO_INFO("    [Forward] Layer {}, param blob {} data: {:g}", layer,
                display_name(net, view, i), mean_magnitude(backend, parameter));
  }
}

void log_backward(const Net& net, const Net::LayerView& view) {
  const std::string& layer = view.layer->name();
  for (std::size_t i = 0; i < view.bottoms.size(); ++i) {
    if (!view.propagate[i]) continue;
    const Tensor& bottom = *view.bottoms[i];
    SPEEDO_INFO("    [Backward] Layer {}, bottom blob {} diff: {:g}", layer, view.bottom_names[i],
                mean_grad_magnitude(net, bottom));
  }
  for (std::size_t i = 0; i < view.layer->parameters().size(); ++i) {
    const Tensor& parameter = *view.layer->parameters()[i];
    const bool is_computed = view.layer->parameter_needs_grad(static_cast<int>(i));
    if (!is_computed || !parameter.has_grad()) continue;
    SPEEDO_INFO("    [Backward] Layer {}, param blob {} diff: {:g}", layer, i,
                mean_grad_magnitude(net, parameter));
  }
}

void log_norms(Net& net) {
  Backend& backend = net.backend();
  const std::int64_t count = net.weights().size();
  const float* data = net.weights().data();
  const float* diff = net.gradients().data();
  const auto scale = static_cast<double>(net.gradient_scale());
  SPEEDO_ERROR(
      "    [Backward] All net params (data, diff): L1 norm = ({:g}, {:g}); L2 norm = ({:g}, {:g})",
      backend.sum_abs(count, data), backend.sum_abs(count, diff) / scale,
      std::sqrt(backend.dot(count, data, data)),
      std::sqrt(backend.dot(count, diff, diff)) / scale);
}

}  // namespace

Result<float> forward_with_debug_info(Net& net) {
  const std::vector<Net::LayerView>& layers = net.layers();
  double loss = 0.0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    SPEEDO_ASSIGN(const float term, net.forward_layer(i));
    loss += static_cast<double>(term);
    if (!layers[i].is_reorder) log_forward(net, layers[i]);
  }
  return static_cast<float>(loss);
}

Result<Accumulated> run_passes_with_debug_info(Net& net, int iter_size) {
  const std::vector<Net::LayerView>& layers = net.layers();
  net.clear_gradients();
  float loss = 0.0F;
  for (int pass = 0; pass < iter_size; ++pass) {
    SPEEDO_ASSIGN(const float pass_loss, forward_with_debug_info(net));
    loss += pass_loss;
    for (std::size_t i = layers.size(); i-- > 0;) {
      net.backward_layer(i);
      if (layers[i].needs_backward && !layers[i].is_reorder) log_backward(net, layers[i]);
    }
    log_norms(net);
  }
  net.unscale_gradients();
  return Accumulated{loss / static_cast<float>(iter_size), net.has_finite_gradients()};
}

}  // namespace speedo
