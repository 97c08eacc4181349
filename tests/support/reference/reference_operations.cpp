#include "support/reference/reference_operations.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>

#include "support/reference/reference_elements.hpp"
#include "support/reference/reference_layout.hpp"
#include "support/reference/reference_position.hpp"

namespace speedo {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

class ReferenceConvolution final : public Convolution {
 public:
  explicit ReferenceConvolution(const ConvolutionShape& shape) : shape_(shape) {}

  OperationInfo info() const override { return {"reference"}; }

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    const std::vector<float> x = read_plain(src_shape(), shape_.src_layout, src);
    std::vector<double> sums(at(dst_count()), 0.0);
    for_each_term([&](std::int64_t s, std::int64_t w, std::int64_t d) {
      sums[at(d)] += static_cast<double>(x[at(s)]) * weights[w];
    });
    const std::int64_t plane = product(shape_.dst_size);
    std::vector<float> y;
    for (std::int64_t i = 0; i < dst_count(); ++i) {
      const double offset = bias == nullptr ? 0.0 : bias[i / plane % shape_.outputs];
      const double value = sums[at(i)] + offset;
      const auto& activation = shape_.activation;
      y.push_back(static_cast<float>(activation ? reference_value(*activation, value) : value));
    }
    write_plain(dst_shape(), shape_.dst_layout, y.data(), dst);
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    const std::vector<float> dy = read_plain(dst_shape(), shape_.dst_layout, dst_grad);
    std::vector<double> sums(at(shape_.batch * shape_.channels * product(shape_.src_size)), 0.0);
    for_each_term([&](std::int64_t s, std::int64_t w, std::int64_t d) {
      sums[at(s)] += static_cast<double>(dy[at(d)]) * weights[w];
    });
    const std::vector<float> dx(sums.begin(), sums.end());
    write_plain(src_shape(), shape_.src_layout, dx.data(), src_grad);
  }

  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    const std::vector<float> x = read_plain(src_shape(), shape_.src_layout, src);
    const std::vector<float> dy = read_plain(dst_shape(), shape_.dst_layout, dst_grad);
    if (weights_grad != nullptr) {
      const std::int64_t count = shape_.outputs * (shape_.channels / shape_.groups);
      std::vector<double> sums(at(count * product(shape_.kernel)), 0.0);
      for_each_term([&](std::int64_t s, std::int64_t w, std::int64_t d) {
        sums[at(w)] += static_cast<double>(dy[at(d)]) * x[at(s)];
      });
      for (std::size_t i = 0; i < sums.size(); ++i) weights_grad[i] += static_cast<float>(sums[i]);
    }
    if (bias_grad == nullptr) return;
    const std::int64_t plane = product(shape_.dst_size);
    std::vector<double> sums(at(shape_.outputs), 0.0);
    for (std::int64_t i = 0; i < dst_count(); ++i) {
      sums[at(i / plane % shape_.outputs)] += dy[at(i)];
    }
    for (std::size_t i = 0; i < sums.size(); ++i) bias_grad[i] += static_cast<float>(sums[i]);
  }

 private:
  ArrayShape src_shape() const { return {shape_.batch, shape_.channels, product(shape_.src_size)}; }
  ArrayShape dst_shape() const { return {shape_.batch, shape_.outputs, product(shape_.dst_size)}; }
  std::int64_t dst_count() const {
    return shape_.batch * shape_.outputs * product(shape_.dst_size);
  }

  // The input index for one output position and kernel position, or -1 in the padding.
  static std::int64_t src_index(const ConvolutionShape& shape,
                                const std::vector<std::int64_t>& output,
                                const std::vector<std::int64_t>& kernel) {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < output.size(); ++i) {
      const std::int64_t x =
          output[i] * shape.stride[i] - shape.pad[i] + kernel[i] * shape.dilation[i];
      if (x < 0 || x >= shape.src_size[i]) return -1;
      index = index * shape.src_size[i] + x;
    }
    return index;
  }

  // Calls visit(input index, weight index, output index) for every product of the definition.
  template <class Visit>
  void for_each_term(const Visit& visit) const {
    if (!shape_.transposed) return terms_of(shape_, visit);
    terms_of(mirrored(shape_), [&](std::int64_t d, std::int64_t w, std::int64_t s) {
      visit(s, w, d);
    });
  }

  template <class Visit>
  static void terms_of(const ConvolutionShape& shape, const Visit& visit) {
    const std::int64_t src_plane = product(shape.src_size);
    const std::int64_t dst_plane = product(shape.dst_size);
    const std::int64_t kernel_plane = product(shape.kernel);
    const std::int64_t inputs = shape.channels / shape.groups;
    const std::int64_t outputs = shape.outputs / shape.groups;
    std::vector<std::vector<std::int64_t>> kernel;
    for (std::int64_t k = 0; k < kernel_plane; ++k) kernel.push_back(position(k, shape.kernel));
    for (std::int64_t p = 0; p < dst_plane; ++p) {
      const auto output = position(p, shape.dst_size);
      for (std::int64_t k = 0; k < kernel_plane; ++k) {
        const std::int64_t s = src_index(shape, output, kernel[at(k)]);
        if (s < 0) continue;
        for (std::int64_t plane = 0; plane < shape.batch * shape.outputs; ++plane) {
          const std::int64_t o = plane % shape.outputs;
          const std::int64_t first =
              plane / shape.outputs * shape.channels + o / outputs * inputs;
          for (std::int64_t c = 0; c < inputs; ++c) {
            visit((first + c) * src_plane + s, (o * inputs + c) * kernel_plane + k,
                  plane * dst_plane + p);
          }
        }
      }
    }
  }

  ConvolutionShape shape_;
};

class ReferencePooling final : public Pooling {
 public:
  explicit ReferencePooling(const PoolingShape& shape) : shape_(shape) {}

  OperationInfo info() const override { return {"reference"}; }

  void forward(const float* src, float* dst, float* mask) override {
    const std::vector<float> x = read_plain(src_shape(), shape_.layout, src);
    std::vector<float> y(at(dst_shape().storage_count({})));
    for_each_window([&](std::int64_t out, const Window& w) {
      const float* plane = x.data() + w.plane * shape_.src_h * shape_.src_w;
      float best = -FLT_MAX;
      double sum = 0.0;
      std::int64_t winner = -1;
      for (std::int64_t row = w.top; row < w.bottom; ++row) {
        for (std::int64_t column = w.left; column < w.right; ++column) {
          const float value = plane[row * shape_.src_w + column];
          sum += value;
          if (value > best) best = value, winner = row * shape_.src_w + column;
        }
      }
      const bool is_max = shape_.method == PoolingShape::Method::kMax;
      y[at(out)] = is_max ? best : static_cast<float>(sum / w.size);
      if (mask != nullptr) mask[out] = static_cast<float>(winner);
    });
    write_plain(dst_shape(), shape_.layout, y.data(), dst);
  }

  // As others' libraries do, it finds each maximum again.
  void backward(const float* src, const float* dst, const float* dst_grad,
                float* src_grad) override {
    const bool is_max = shape_.method == PoolingShape::Method::kMax;
    const auto x = is_max ? read_plain(src_shape(), shape_.layout, src) : std::vector<float>();
    const auto y = is_max ? read_plain(dst_shape(), shape_.layout, dst) : std::vector<float>();
    const std::vector<float> dy = read_plain(dst_shape(), shape_.layout, dst_grad);
    const std::int64_t plane_count = shape_.src_h * shape_.src_w;
    std::vector<double> sums(at(src_shape().storage_count({})), 0.0);
    for_each_window([&](std::int64_t out, const Window& w) {
      double* plane = sums.data() + w.plane * plane_count;
      if (is_max) {
        const std::int64_t winner = find_winner(w, x.data() + w.plane * plane_count, y[at(out)]);
        if (winner >= 0) plane[winner] += dy[at(out)];
        return;
      }
      for (std::int64_t row = w.top; row < w.bottom; ++row) {
        for (std::int64_t column = w.left; column < w.right; ++column) {
          plane[row * shape_.src_w + column] += dy[at(out)] / w.size;
        }
      }
    });
    const std::vector<float> dx(sums.begin(), sums.end());
    write_plain(src_shape(), shape_.layout, dx.data(), src_grad);
  }

 private:
  ArrayShape src_shape() const {
    return {shape_.batch, shape_.channels, shape_.src_h * shape_.src_w};
  }
  ArrayShape dst_shape() const {
    return {shape_.batch, shape_.channels, shape_.dst_h * shape_.dst_w};
  }

  // A window clipped to the image; `size` counts what lies in the padded image.
  struct Window {
    std::int64_t plane, top, bottom, left, right;
    double size;
  };

  // The first that is the maximum; -1 where there is no number.
  std::int64_t find_winner(const Window& w, const float* plane, float maximum) const {
    for (std::int64_t row = w.top; row < w.bottom; ++row) {
      for (std::int64_t column = w.left; column < w.right; ++column) {
        const std::int64_t place = row * shape_.src_w + column;
        if (plane[place] > -FLT_MAX && plane[place] == maximum) return place;
      }
    }
    return -1;
  }

  void for_each_window(const std::function<void(std::int64_t, const Window&)>& visit) const {
    const PoolingShape& s = shape_;
    for (std::int64_t out = 0; out < dst_shape().storage_count({}); ++out) {
      const std::int64_t y = out / s.dst_w % s.dst_h * s.stride_h - s.pad_h;
      const std::int64_t x = out % s.dst_w * s.stride_w - s.pad_w;
      const std::int64_t y_end = std::min(y + s.kernel_h, s.src_h + s.pad_h);
      const std::int64_t x_end = std::min(x + s.kernel_w, s.src_w + s.pad_w);
      const double size = static_cast<double>((y_end - y) * (x_end - x));
      visit(out, {out / (s.dst_w * s.dst_h), std::max<std::int64_t>(y, 0), std::min(y_end, s.src_h),
                  std::max<std::int64_t>(x, 0), std::min(x_end, s.src_w), size});
    }
  }

  PoolingShape shape_;
};

class ReferenceLrn final : public Lrn {
 public:
  explicit ReferenceLrn(const LrnShape& shape) : shape_(shape) {}

  OperationInfo info() const override { return {"reference"}; }

  void forward(const float* src, float* dst) override {
    const std::vector<float> x = read_plain(array_shape(), shape_.layout, src);
    std::vector<float> y;
    for (std::int64_t i = 0; i < count(); ++i) {
      y.push_back(static_cast<float>(x[at(i)] * std::pow(scale(x, i), -double{shape_.beta})));
    }
    write_plain(array_shape(), shape_.layout, y.data(), dst);
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    const std::vector<float> x = read_plain(array_shape(), shape_.layout, src);
    const std::vector<float> dy = read_plain(array_shape(), shape_.layout, dst_grad);
    std::vector<double> sums(at(count()), 0.0);
    for (std::int64_t i = 0; i < count(); ++i) {
      const double s = scale(x, i);
      const double factor = std::pow(s, -double{shape_.beta});
      sums[at(i)] += dy[at(i)] * factor;
      for_each_neighbour(i, [&](std::int64_t j) {
        sums[at(j)] -= 2.0 * shape_.beta * weight() * x[at(j)] * dy[at(i)] * x[at(i)] * factor / s;
      });
    }
    const std::vector<float> dx(sums.begin(), sums.end());
    write_plain(array_shape(), shape_.layout, dx.data(), src_grad);
  }

 private:
  bool is_within() const { return shape_.region == LrnShape::Region::kWithin; }
  ArrayShape array_shape() const { return {shape_.batch, shape_.channels, shape_.h * shape_.w}; }
  std::int64_t count() const { return array_shape().storage_count({}); }
  // Of one square in the scale.
  double weight() const {
    const auto size = static_cast<double>(shape_.size);
    return shape_.alpha / (is_within() ? size * size : size);
  }

  template <class Visit>
  void for_each_neighbour(std::int64_t index, const Visit& visit) const {
    const std::int64_t spatial = shape_.h * shape_.w, half = shape_.size / 2;
    const std::int64_t channel = index / spatial % shape_.channels;
    const std::int64_t y = index / shape_.w % shape_.h, x = index % shape_.w;
    for (std::int64_t a = -half; a <= half; ++a) {
      if (!is_within()) {
        if (channel + a >= 0 && channel + a < shape_.channels) visit(index + a * spatial);
        continue;
      }
      for (std::int64_t b = -half; b <= half; ++b) {
        const bool inside = y + a >= 0 && y + a < shape_.h && x + b >= 0 && x + b < shape_.w;
        if (inside) visit(index + a * shape_.w + b);
      }
    }
  }

  double scale(const std::vector<float>& x, std::int64_t index) const {
    double sum = 0.0;
    for_each_neighbour(index, [&](std::int64_t j) { sum += double{x[at(j)]} * x[at(j)]; });
    return (is_within() ? 1.0 : double{shape_.k}) + weight() * sum;
  }

  LrnShape shape_;
};

class ReferenceBatchNorm final : public BatchNorm {
 public:
  ReferenceBatchNorm(const BatchNormShape& shape, Rounding rounded)
      : shape_(shape), rounded_(rounded) {}

  OperationInfo info() const override { return {"reference"}; }

  void forward(const float* src, const float* gamma, const float* beta, float* mean,
               float* variance, float* dst) override {
    const std::vector<float> x = read_plain(array_shape(), shape_.layout, src);
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      double sum = 0.0, squares = 0.0;
      for_each_of(c, [&](std::int64_t i) { sum += x[at(i)]; });
      for_each_of(c, [&](std::int64_t i) {
        const double difference = x[at(i)] - sum / per_channel();
        squares += difference * difference;
      });
      mean[c] = rounded_(sum / per_channel());
      variance[c] = static_cast<float>(squares / per_channel());
    }
    normalize(src, mean, variance, gamma, beta, dst);
  }

  void forward_fixed(const float* src, const float* mean, const float* variance, const float* gamma,
                     const float* beta, float* dst) override {
    normalize(src, mean, variance, gamma, beta, dst);
  }

  void add_next(const float* addend) override { addend_ = addend; }

  void normalize(const float* src, const float* mean, const float* variance, const float* gamma,
                 const float* beta, float* dst) {
    std::vector<float> x = read_plain(array_shape(), shape_.layout, src);
    std::vector<float> added(x.size());
    if (shape_.adds) added = read_plain(array_shape(), shape_.layout, addend_);
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      for_each_of(c, [&](std::int64_t i) {
        const double normal = (double{x[at(i)]} - mean[c]) / deviation(variance[c]);
        const double y = normal * (gamma == nullptr ? 1.0 : double{gamma[c]}) +
                         (beta == nullptr ? 0.0 : double{beta[c]});
        // Rounded where it would be stored, were it not for the sum.
        const double z = shape_.adds ? double{static_cast<float>(y) + added[at(i)]} : y;
        x[at(i)] =
            static_cast<float>(shape_.activation ? reference_value(*shape_.activation, z) : z);
      });
    }
    write_plain(array_shape(), shape_.layout, x.data(), dst);
  }

  void backward(const BatchNormGradient& g) override {
    const BackwardReads reads = reference_backward_reads(shape_);
    const auto read = [&](const float* from) {
      return read_plain(array_shape(), shape_.layout, from);
    };
    std::vector<float> dy = read(g.dst_grad);
    const std::vector<float> x = reads.src ? read(g.src) : dy;
    const std::vector<float> y = reads.dst ? read(g.dst) : std::vector<float>();
    for (std::int64_t c = 0; c < shape_.channels; ++c) {
      const double spread = deviation(g.variance[c]);
      const auto normal = [&](std::int64_t i) { return (double{x[at(i)]} - g.mean[c]) / spread; };
      double sum = 0.0, product = 0.0;
      for_each_of(c, [&](std::int64_t i) {
        if (reads.dst && !(y[at(i)] > 0.0F)) dy[at(i)] *= shape_.activation->a;
        sum += dy[at(i)];
        product += dy[at(i)] * normal(i);
      });
      if (g.gamma_grad != nullptr) g.gamma_grad[c] += static_cast<float>(product);
      if (g.beta_grad != nullptr) g.beta_grad[c] += static_cast<float>(sum);
      const double factor = (g.gamma == nullptr ? 1.0 : double{g.gamma[c]}) / spread;
      for_each_of(c, [&](std::int64_t i) {
        const double mean_part =
            shape_.is_fixed ? 0.0 : (sum + normal(i) * product) / per_channel();
        dy[at(i)] = static_cast<float>(factor * (dy[at(i)] - mean_part));
      });
    }
    write_plain(array_shape(), shape_.layout, dy.data(), g.src_grad);
  }

 private:
  ArrayShape array_shape() const { return {shape_.batch, shape_.channels, shape_.spatial}; }
  double per_channel() const { return static_cast<double>(shape_.batch * shape_.spatial); }
  double deviation(float variance) const {
    return std::sqrt(double{variance} + double{shape_.epsilon});
  }

  template <class Visit>
  void for_each_of(std::int64_t channel, const Visit& visit) const {
    for (std::int64_t n = 0; n < shape_.batch; ++n) {
      for (std::int64_t p = 0; p < shape_.spatial; ++p) {
        visit((n * shape_.channels + channel) * shape_.spatial + p);
      }
    }
  }

  BatchNormShape shape_;
  Rounding rounded_;
  const float* addend_ = nullptr;
};

}  // namespace

BackwardReads reference_backward_reads(const BatchNormShape& shape) {
  return {.src = !shape.is_fixed || shape.trains_gamma,
          .dst = shape.activation.has_value() && !shape.adds};
}

std::unique_ptr<Convolution> make_reference_convolution(const ConvolutionShape& shape) {
  return std::make_unique<ReferenceConvolution>(shape);
}

std::unique_ptr<Pooling> make_reference_pooling(const PoolingShape& shape) {
  return std::make_unique<ReferencePooling>(shape);
}

std::unique_ptr<Lrn> make_reference_lrn(const LrnShape& shape) {
  return std::make_unique<ReferenceLrn>(shape);
}

std::unique_ptr<BatchNorm> make_reference_batch_norm(const BatchNormShape& shape,
                                                    Rounding rounded) {
  return std::make_unique<ReferenceBatchNorm>(shape, rounded);
}

}  // namespace speedo
