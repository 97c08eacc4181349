#include "gpu/norm/batch_norm_kernels.hpp"

#include <cmath>

#include "gpu/elementwise/channel_sums.hpp"
#include "gpu/elementwise/unary_math.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/support/layout_index.hpp"

namespace speedo::gpu {
namespace {

ArrayShape array_of(const BatchNormShape& shape) {
  return {shape.batch, shape.channels, shape.spatial};
}

SPEEDO_HOST_DEVICE double spread_of(float variance, float epsilon) {
  return std::sqrt(static_cast<double>(variance) + static_cast<double>(epsilon));
}

// What the forward pass does to a channel.
struct ChannelNorm {
  float mean, factor, offset;

  SPEEDO_HOST_DEVICE float operator()(float x) const { return (x - mean) * factor + offset; }
};

// The first value of each channel: what its others differ from keeps its digits when it is squared.
struct ChannelOrigin {
  ArrayFrom src;
  std::int64_t block, area;

  SPEEDO_HOST_DEVICE float operator()(std::int64_t c) const {
    return src[c / block * area + c % block];
  }
};

struct MomentTerms {
  static constexpr const char* kName = "norm_moments";
  ChannelOrigin origin;

  SPEEDO_HOST_DEVICE ElementType type() const { return origin.src.type; }
  SPEEDO_HOST_DEVICE float channel(std::int64_t c) const { return origin(c); }
  bool are_aligned() const { return gpu::are_aligned(origin.src); }
  template <class At>
  SPEEDO_HOST_DEVICE auto load(At at) const {
    SumValues<decltype(at.load(origin.src))> of;
    of.x = at.load(origin.src);
    return of;
  }
  SPEEDO_HOST_DEVICE void add(const SumValues<float>& of, float first, double& sum,
                              double& squares) const {
    const double difference = static_cast<double>(of.x) - static_cast<double>(first);
    sum += difference;
    squares += difference * difference;
  }
};

SPEEDO_HOST_DEVICE void set_factor(const NormParameters& from, float epsilon,
                                   const NormCoefficients& to, std::int64_t c, float variance) {
  const double scale = from.gamma == nullptr ? 1.0 : static_cast<double>(from.gamma[c]);
  to.factor[c] = static_cast<float>(scale / spread_of(variance, epsilon));
  to.offset[c] = from.beta == nullptr ? 0.0F : from.beta[c];
}

struct FinishMoments {
  static constexpr const char* kName = "norm_finish_moments";
  ChannelOrigin origin;
  NormParameters from;
  NormStatistics statistics;
  NormCoefficients to;
  double count;
  float epsilon;

  SPEEDO_HOST_DEVICE void operator()(std::int64_t c, double sum, double squares) const {
    const double apart = squares - sum * (sum / count);
    statistics.mean[c] = static_cast<float>(static_cast<double>(origin(c)) + sum / count);
    // Not by a comparison that would hide a NaN.
    const auto variance = static_cast<float>((apart < 0.0 ? 0.0 : apart) / count);
    statistics.variance[c] = variance;
    set_factor(from, epsilon, to, c, variance);
  }
};

struct FixedStatisticsKernel {
  static constexpr const char* kName = "norm_fixed_statistics";
  std::int64_t channels;
  const float* variance;
  NormParameters from;
  NormCoefficients to;
  float epsilon;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t c = lane.first(); c < channels; c += lane.stride()) {
      set_factor(from, epsilon, to, c, variance[c]);
    }
  }
};

struct NormForwardKernel {
  static constexpr const char* kName = "norm_forward";
  ChannelIndex index;
  const float* mean;
  NormCoefficients by;
  Activation activation;
  ArrayFrom src, addend;  // addend null: none
  ArrayTo dst;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (addend.is_null()) {
      normalize(lane, [](auto, auto x) { return decltype(x){}; },
                [](float y, float) { return y; });
    } else {
      normalize(lane, [&](auto at, auto) { return at.load(addend); },
                [](float y, float added) { return y + added; });
    }
  }

 private:
  template <class LoadAddend, class Add>
  SPEEDO_HOST_DEVICE void normalize(const Lane& lane, const LoadAddend& load_addend,
                                    const Add& add) const {
    const auto f = [&](float x, float added, float channel_mean, float factor, float offset) {
      return activation(add(ChannelNorm{channel_mean, factor, offset}(x), added));
    };
    index.for_each(lane, by_fours, [&](auto at, auto channels) {
      const auto x = at.load(src);
      at.store(dst, channels.each(f, x, load_addend(at, x), channels.load(mean),
                                  channels.load(by.factor), channels.load(by.offset)));
    });
  }
};

// What of dst_grad comes through the ReLU, if there is one: by the sign of dst, or of what the
// forward pass made of src.
struct ThroughRelu {
  bool is_given, by_dst;
  float below;  // its slope there

  SPEEDO_HOST_DEVICE float operator()(const ChannelNorm& norm, float x, float y, float grad) const {
    if (!is_given) return grad;
    const float sign = by_dst ? y : norm(x);
    return sign > 0.0F ? grad : below * grad;
  }
};

ThroughRelu through_relu(const BatchNormShape& shape) {
  const bool is_given = shape.activation.has_value() && !shape.adds;
  return {is_given, is_given && shape.is_fixed, is_given ? shape.activation->a : 0.0F};
}

struct NormGradientTerms {
  static constexpr const char* kName = "norm_gradient_sums";
  ThroughRelu through;
  ArrayFrom src;  // null: no products
  ArrayFrom dst;  // read by `through` alone
  ArrayFrom dst_grad;
  const float* mean;
  NormCoefficients by;

  SPEEDO_HOST_DEVICE ElementType type() const { return dst_grad.type; }
  bool are_aligned() const { return gpu::are_aligned(src, dst, dst_grad); }
  SPEEDO_HOST_DEVICE ChannelNorm channel(std::int64_t c) const {
    return {mean[c], by.factor[c], by.offset[c]};
  }
  template <class At>
  SPEEDO_HOST_DEVICE auto load(At at) const {
    SumValues<decltype(at.load(dst_grad))> of;
    if (!src.is_null()) of.x = at.load(src);
    if (through.by_dst) of.y = at.load(dst);
    of.grad = at.load(dst_grad);
    return of;
  }
  SPEEDO_HOST_DEVICE void add(const SumValues<float>& of, const ChannelNorm& norm, double& sum,
                              double& product) const {
    const auto grad = static_cast<double>(through(norm, of.x, of.y, of.grad));
    sum += grad;
    if (!src.is_null()) product += grad * static_cast<double>(of.x - norm.mean);
  }
};

struct FinishNormGradient {
  static constexpr const char* kName = "norm_finish_gradient";
  const float* variance;
  float* gamma_grad;
  float* beta_grad;
  NormCoefficients by;
  double count;
  float epsilon;
  bool is_fixed;

  SPEEDO_HOST_DEVICE void operator()(std::int64_t c, double sum, double product) const {
    const double spread = spread_of(variance[c], epsilon);
    if (gamma_grad != nullptr) gamma_grad[c] += static_cast<float>(product / spread);
    if (beta_grad != nullptr) beta_grad[c] += static_cast<float>(sum);
    const double factor = is_fixed ? 0.0 : static_cast<double>(by.factor[c]) / count;
    by.shift[c] = static_cast<float>(-factor * sum);
    by.spread[c] = static_cast<float>(-factor * product / (spread * spread));
  }
};

struct NormBackwardKernel {
  static constexpr const char* kName = "norm_backward";
  ChannelIndex index;
  ThroughRelu through;
  const float* mean;
  NormCoefficients by;
  bool is_fixed;
  ArrayFrom seen;  // src; with fixed statistics dst, or dst_grad where that is not read
  ArrayFrom dst_grad;
  ArrayTo src_grad;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const auto f = [&](float x, float grad, float channel_mean, float factor, float offset,
                       float shift, float spread) {
      const float direct = factor * through({channel_mean, factor, offset}, x, x, grad);
      if (is_fixed) return direct;
      return direct + shift + (x - channel_mean) * spread;
    };
    index.for_each(lane, by_fours, [&](auto at, auto channels) {
      const auto grad = at.load(dst_grad);
      const auto x = seen.data == dst_grad.data ? grad : at.load(seen);
      at.store(src_grad, channels.each(f, x, grad, channels.load(mean), channels.load(by.factor),
                                       channels.load(by.offset), channels.load(by.shift),
                                       channels.load(by.spread)));
    });
  }
};

}  // namespace

void norm_statistics(Queue& queue, const BatchNormShape& shape, const float* src,
                     const NormParameters& from, const NormStatistics& to,
                     const NormCoefficients& coefficients) {
  const ChannelOrigin origin{
      {src, shape.layout.type}, shape.layout.block, shape.spatial * shape.layout.block};
  const auto count = static_cast<double>(shape.batch * shape.spatial);
  sum_over_channels(queue, {array_of(shape), shape.layout}, MomentTerms{origin},
                    FinishMoments{origin, from, to, coefficients, count, shape.epsilon});
}

void norm_fixed_statistics(Queue& queue, const BatchNormShape& shape, const float* variance,
                           const NormParameters& from, const NormCoefficients& coefficients) {
  launch(queue, grid_for(queue, shape.channels),
         FixedStatisticsKernel{shape.channels, variance, from, coefficients, shape.epsilon});
}

void norm_forward(Queue& queue, const BatchNormShape& shape, const NormSource& of,
                  const float* mean, const NormCoefficients& by, float* dst) {
  const ChannelIndex index(array_of(shape), shape.layout);
  const ArrayFrom from{of.src, shape.layout.type}, addend{of.addend, shape.layout.type};
  const ArrayTo to{dst, shape.layout.type};
  launch(queue, grid_for(queue, index.count(), 4),
         NormForwardKernel{index, mean, by, Activation(shape.activation), from, addend, to,
                           index.has_fours(mean, by.factor, by.offset) &&
                               are_aligned(from, addend, to)});
}

void norm_gradient_sums(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                        const NormCoefficients& of) {
  const bool reads_src = !shape.is_fixed || arrays.gamma_grad != nullptr;
  const auto count = static_cast<double>(shape.batch * shape.spatial);
  const auto from = [&](const float* array) { return ArrayFrom{array, shape.layout.type}; };
  sum_over_channels(queue, {array_of(shape), shape.layout},
                    NormGradientTerms{through_relu(shape),
                                      from(reads_src ? arrays.src : nullptr), from(arrays.dst),
                                      from(arrays.dst_grad), arrays.mean, of},
                    FinishNormGradient{arrays.variance, arrays.gamma_grad, arrays.beta_grad, of,
                                       count, shape.epsilon, shape.is_fixed});
}

void norm_backward(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                   const NormCoefficients& by) {
  const ChannelIndex index(array_of(shape), shape.layout);
  const ThroughRelu through = through_relu(shape);
  const float* const fixed = through.by_dst ? arrays.dst : arrays.dst_grad;
  const ElementType type = shape.layout.type;
  const ArrayFrom seen{shape.is_fixed ? fixed : arrays.src, type}, grad{arrays.dst_grad, type};
  const ArrayTo src_grad{arrays.src_grad, type};
  // With fixed statistics the factor alone is used.
  const float* const mean = shape.is_fixed ? nullptr : arrays.mean;
  const NormCoefficients read =
      shape.is_fixed ? NormCoefficients{by.factor, nullptr, nullptr, nullptr} : by;
  const bool by_fours = index.has_fours(mean, read.factor, read.offset, read.shift, read.spread) &&
                        are_aligned(seen, grad, src_grad);
  launch(queue, grid_for(queue, index.count(), 4),
         NormBackwardKernel{index, through, mean, read, shape.is_fixed, seen, grad, src_grad,
                            by_fours});
}

}  // namespace speedo::gpu
