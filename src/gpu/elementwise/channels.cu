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
  ArrayFrom x;
  ArrayTo y;
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

struct NoChannel {};

struct ScaleTerms {
  static constexpr const char* kName = "sum_channels";
  ArrayFrom x;  // null: no first sum
  ArrayFrom y_grad;

  SPEEDO_HOST_DEVICE ElementType type() const { return y_grad.type; }
  SPEEDO_HOST_DEVICE NoChannel channel(std::int64_t /*c*/) const { return {}; }
  bool are_aligned() const { return gpu::are_aligned(x, y_grad); }
  template <class At>
  SPEEDO_HOST_DEVICE auto load(At at) const {
    SumValues<decltype(at.load(y_grad))> of;
    if (!x.is_null()) of.x = at.load(x);
    of.grad = at.load(y_grad);
    return of;
  }
  SPEEDO_HOST_DEVICE void add(const SumValues<float>& of, NoChannel /*of*/, double& product,
                              double& sum) const {
    const auto grad = static_cast<double>(of.grad);
    sum += grad;
    if (!x.is_null()) product += grad * static_cast<double>(of.x);
  }
};

struct SlopeTerms {
  static constexpr const char* kName = "sum_slopes";
  const float* x;
  const float* y_grad;

  SPEEDO_HOST_DEVICE ElementType type() const { return ElementType::kFloat32; }
  SPEEDO_HOST_DEVICE NoChannel channel(std::int64_t /*c*/) const { return {}; }
  bool are_aligned() const { return gpu::are_aligned(x, y_grad); }
  template <class At>
  SPEEDO_HOST_DEVICE auto load(At at) const {
    SumValues<decltype(at.load(x))> of;
    of.x = at.load(x);
    of.grad = at.load(y_grad);
    return of;
  }
  SPEEDO_HOST_DEVICE void add(const SumValues<float>& of, NoChannel /*of*/, double& product,
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
  SPEEDO_ASSERT(view.layout.type == ElementType::kFloat32);
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
  const ArrayFrom from{x, view.layout.type};
  const ArrayTo to{y, view.layout.type};
  launch(queue, grid_for(queue, index.count(), 4),
         ScaleChannelsKernel{index, scale.gamma, scale.beta, Activation(scale.activation), from, to,
                             index.has_fours(scale.gamma, scale.beta) && are_aligned(from, to)});
}

void sum_channels(Queue& queue, const ChannelView& view, const float* x, const float* y_grad,
                  float* gamma_grad, float* beta_grad) {
  if (gamma_grad == nullptr && beta_grad == nullptr) return;
  const ElementType type = view.layout.type;
  sum_over_channels(queue, view,
                    ScaleTerms{{gamma_grad == nullptr ? nullptr : x, type}, {y_grad, type}},
                    AddToGradients{gamma_grad, beta_grad});
}

void prelu_forward(Queue& queue, const ChannelView& view, const float* slope, const float* x,
                   float* y) {
  if (view.shape.storage_count(view.layout) == 0) return;
  prelu(queue, view, slope, x, x, y);
}

void prelu_backward(Queue& queue, const ChannelView& view, const PreluGradient& arrays) {
  SPEEDO_ASSERT(view.layout.type == ElementType::kFloat32);
  if (arrays.slope_grad != nullptr) {
    sum_over_channels(queue, view, SlopeTerms{arrays.x, arrays.y_grad},
                      AddToGradients{arrays.slope_grad, nullptr});
  }
  if (arrays.x_grad == nullptr || view.shape.storage_count(view.layout) == 0) return;
  prelu(queue, view, arrays.slope, arrays.x, arrays.y_grad, arrays.x_grad);
}

}  // namespace speedo::gpu
