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

SPEEDO_HOST_DEVICE float centred(float x, float mean, float factor, float offset) {
  return (x - mean) * factor + offset;
}

// The first value of each channel: what its others differ from keeps its digits when it is squared.
struct ChannelOrigin {
  const float* src;
  std::int64_t block, area;

  SPEEDO_HOST_DEVICE float operator()(std::int64_t c) const {
    return src[c / block * area + c % block];
  }
};

struct MomentTerms {
  static constexpr const char* kName = "norm_moments";
  ChannelOrigin origin;

  SPEEDO_HOST_DEVICE float load(std::int64_t at, std::int64_t /*c*/) const {
    return origin.src[at];
  }
  SPEEDO_HOST_DEVICE void add(float x, std::int64_t c, double& sum, double& squares) const {
    const double difference = static_cast<double>(x) - static_cast<double>(origin(c));
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
  const float* src;
  float* dst;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const auto f = [&](std::int64_t c, float x) {
      return activation(centred(x, mean[c], by.factor[c], by.offset[c]));
    };
    for_each_element(lane, index.count(), by_fours,
                     [&](auto at) { at.store(dst, index.each(at, f, at.load(src))); });
  }
};

// What of dst_grad comes through the ReLU, if there is one: by the sign of dst, or of what the
// forward pass made of src.
struct ThroughRelu {
  bool is_given, by_dst;
  float below;  // its slope there
  const float* mean;
  NormCoefficients by;

  SPEEDO_HOST_DEVICE float operator()(std::int64_t c, float x, float y, float grad) const {
    if (!is_given) return grad;
    const float sign = by_dst ? y : centred(x, mean[c], by.factor[c], by.offset[c]);
    return sign > 0.0F ? grad : below * grad;
  }
};

ThroughRelu through_relu(const BatchNormShape& shape, const BatchNormGradient& arrays,
                         const NormCoefficients& by) {
  const bool is_given = shape.activation.has_value();
  return {is_given, is_given && shape.is_fixed, is_given ? shape.activation->a : 0.0F, arrays.mean,
          by};
}

struct NormGradientTerms {
  static constexpr const char* kName = "norm_gradient_sums";
  ThroughRelu through;
  const float* src;  // null: no products
  const float* dst;  // read by `through` alone
  const float* dst_grad;

  struct Values {
    float x, y, grad;
  };
  SPEEDO_HOST_DEVICE Values load(std::int64_t at, std::int64_t /*c*/) const {
    return {src == nullptr ? 0.0F : src[at], through.by_dst ? dst[at] : 0.0F, dst_grad[at]};
  }
  SPEEDO_HOST_DEVICE void add(const Values& of, std::int64_t c, double& sum,
                              double& product) const {
    const auto grad = static_cast<double>(through(c, of.x, of.y, of.grad));
    sum += grad;
    if (src != nullptr) product += grad * static_cast<double>(of.x - through.mean[c]);
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
  NormCoefficients by;
  bool is_fixed;
  const float* src;  // dst_grad where it is not read; so is dst
  const float* dst;
  const float* dst_grad;
  float* src_grad;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const auto f = [&](std::int64_t c, float x, float y, float grad) {
      const float direct = by.factor[c] * through(c, x, y, grad);
      if (is_fixed) return direct;
      return direct + by.shift[c] + (x - through.mean[c]) * by.spread[c];
    };
    for_each_element(lane, index.count(), by_fours, [&](auto at) {
      const auto grad = at.load(dst_grad);
      const auto x = src == dst_grad ? grad : at.load(src);
      const auto y = dst == dst_grad ? grad : at.load(dst);
      at.store(src_grad, index.each(at, f, x, y, grad));
    });
  }
};

}  // namespace

void norm_statistics(Queue& queue, const BatchNormShape& shape, const float* src,
                     const NormParameters& from, const NormStatistics& to,
                     const NormCoefficients& coefficients) {
  const ChannelOrigin origin{src, shape.layout.block, shape.spatial * shape.layout.block};
  const auto count = static_cast<double>(shape.batch * shape.spatial);
  sum_over_channels(queue, {array_of(shape), shape.layout}, MomentTerms{origin},
                    FinishMoments{origin, from, to, coefficients, count, shape.epsilon});
}

void norm_fixed_statistics(Queue& queue, const BatchNormShape& shape, const float* variance,
                           const NormParameters& from, const NormCoefficients& coefficients) {
  launch(queue, grid_for(queue, shape.channels),
         FixedStatisticsKernel{shape.channels, variance, from, coefficients, shape.epsilon});
}

void norm_forward(Queue& queue, const BatchNormShape& shape, const float* mean,
                  const NormCoefficients& by, const float* src, float* dst) {
  const ChannelIndex index(array_of(shape), shape.layout);
  launch(queue, grid_for(queue, index.count(), 4),
         NormForwardKernel{index, mean, by, Activation(shape.activation), src, dst,
                           index.has_fours() && are_aligned(src, dst)});
}

void norm_gradient_sums(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                        const NormCoefficients& of) {
  const bool reads_src = !shape.is_fixed || arrays.gamma_grad != nullptr;
  const auto count = static_cast<double>(shape.batch * shape.spatial);
  sum_over_channels(
      queue, {array_of(shape), shape.layout},
      NormGradientTerms{through_relu(shape, arrays, of), reads_src ? arrays.src : nullptr,
                        arrays.dst, arrays.dst_grad},
      FinishNormGradient{arrays.variance, arrays.gamma_grad, arrays.beta_grad, of, count,
                         shape.epsilon, shape.is_fixed});
}

void norm_backward(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                   const NormCoefficients& by) {
  const ChannelIndex index(array_of(shape), shape.layout);
  const ThroughRelu through = through_relu(shape, arrays, by);
  const float* const src = shape.is_fixed ? arrays.dst_grad : arrays.src;
  const float* const dst = through.by_dst ? arrays.dst : arrays.dst_grad;
  launch(queue, grid_for(queue, index.count(), 4),
         NormBackwardKernel{
             index, through, by, shape.is_fixed, src, dst, arrays.dst_grad, arrays.src_grad,
             index.has_fours() && are_aligned(src, dst, arrays.dst_grad, arrays.src_grad)});
}

}  // namespace speedo::gpu
