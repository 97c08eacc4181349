#include "gpu/elementwise/channels.hpp"

#include "gpu/elementwise/channel_sums.hpp"
#include "gpu/elementwise/unary_math.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/support/layout_index.hpp"

namespace speedo::gpu {
namespace {

struct ScaleChannelsKernel {
  static constexpr const char* kName = "scale_channels";
  ChannelIndex index;
  const float* gamma;  // null: 1
  const float* beta;   // null: 0
  Activation activation;
  const float* x;
  float* y;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const auto f = [&](float v, float factor, float summand) {
      if (gamma != nullptr) v *= factor;
      if (beta != nullptr) v += summand;
      return activation(v);
    };
    index.for_each(lane, by_fours, [&](auto at, auto channels) {
      at.store(y, channels.each(f, at.load(x), channels.load(gamma), channels.load(beta)));
    });
  }
};

struct PreluKernel {
  static constexpr const char* kName = "prelu";
  ChannelIndex index;
  const float* slope;
  const float* x;  // whose sign decides
  const float* values;
  float* results;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const auto f = [](float sign, float v, float below) { return sign > 0.0F ? v : below * v; };
    index.for_each(lane, by_fours, [&](auto at, auto channels) {
      at.store(results, channels.each(f, at.load(x), at.load(values), channels.load(slope)));
    });
  }
};

struct TwoFloats {
  float x, grad;
};
struct NoChannel {};

struct ScaleTerms {
  static constexpr const char* kName = "sum_channels";
  const float* x;  // null: no first sum
  const float* y_grad;

  SPEEDO_HOST_DEVICE NoChannel channel(std::int64_t /*c*/) const { return {}; }
  SPEEDO_HOST_DEVICE TwoFloats load(std::int64_t at) const {
    return {x == nullptr ? 0.0F : x[at], y_grad[at]};
  }
  SPEEDO_HOST_DEVICE void add(TwoFloats of, NoChannel /*of*/, double& product, double& sum) const {
    const auto grad = static_cast<double>(of.grad);
    sum += grad;
    if (x != nullptr) product += grad * static_cast<double>(of.x);
  }
};

struct SlopeTerms {
  static constexpr const char* kName = "sum_slopes";
  const float* x;
  const float* y_grad;

  SPEEDO_HOST_DEVICE NoChannel channel(std::int64_t /*c*/) const { return {}; }
  SPEEDO_HOST_DEVICE TwoFloats load(std::int64_t at) const { return {x[at], y_grad[at]}; }
  SPEEDO_HOST_DEVICE void add(TwoFloats of, NoChannel /*of*/, double& product,
                              double& /*unused*/) const {
    if (!(of.x > 0.0F)) product += static_cast<double>(of.grad) * static_cast<double>(of.x);
  }
};

// Adds the sums to gradients, either of which may be null.
struct AddToGradients {
  static constexpr const char* kName = "add_to_gradients";
  float* first;
  float* second;

  SPEEDO_HOST_DEVICE void operator()(std::int64_t c, double a, double b) const {
    if (first != nullptr) first[c] += static_cast<float>(a);
    if (second != nullptr) second[c] += static_cast<float>(b);
  }
};

void prelu(Queue& queue, const ChannelView& view, const float* slope, const float* x,
           const float* values, float* results) {
  const ChannelIndex index(view.shape, view.layout);
  launch(queue, grid_for(queue, index.count(), 4),
         PreluKernel{index, slope, x, values, results,
                     index.has_fours(slope) && are_aligned(x, values, results)});
}

}  // namespace

void scale_channels(Queue& queue, const ChannelView& view, const ChannelScale& scale,
                    const float* x, float* y) {
  if (view.shape.storage_count(view.layout) == 0) return;
  const ChannelIndex index(view.shape, view.layout);
  launch(queue, grid_for(queue, index.count(), 4),
         ScaleChannelsKernel{index, scale.gamma, scale.beta, Activation(scale.activation), x, y,
                             index.has_fours(scale.gamma, scale.beta) && are_aligned(x, y)});
}

void sum_channels(Queue& queue, const ChannelView& view, const float* x, const float* y_grad,
                  float* gamma_grad, float* beta_grad) {
  if (gamma_grad == nullptr && beta_grad == nullptr) return;
  sum_over_channels(queue, view, ScaleTerms{gamma_grad == nullptr ? nullptr : x, y_grad},
                    AddToGradients{gamma_grad, beta_grad});
}

void prelu_forward(Queue& queue, const ChannelView& view, const float* slope, const float* x,
                   float* y) {
  if (view.shape.storage_count(view.layout) == 0) return;
  prelu(queue, view, slope, x, x, y);
}

void prelu_backward(Queue& queue, const ChannelView& view, const PreluGradient& arrays) {
  if (arrays.slope_grad != nullptr) {
    sum_over_channels(queue, view, SlopeTerms{arrays.x, arrays.y_grad},
                      AddToGradients{arrays.slope_grad, nullptr});
  }
  if (arrays.x_grad == nullptr || view.shape.storage_count(view.layout) == 0) return;
  prelu(queue, view, arrays.slope, arrays.x, arrays.y_grad, arrays.x_grad);
}

}  // namespace speedo::gpu
