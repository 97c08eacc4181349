#include "support/reference_operations.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <numeric>

namespace speedo {
namespace {

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// The position of a row-major index.
std::vector<std::int64_t> position(std::int64_t index, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> result(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    result[i] = index % sizes[i];
    index /= sizes[i];
  }
  return result;
}

class ReferenceConvolution final : public Convolution {
 public:
  explicit ReferenceConvolution(const ConvolutionShape& shape) : shape_(shape) {}

  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    std::vector<double> sums(at(dst_count()), 0.0);
    for_each_term([&](std::int64_t s, std::int64_t w, std::int64_t d) {
      sums[at(d)] += static_cast<double>(src[s]) * weights[w];
    });
    const std::int64_t plane = product(shape_.dst_size);
    for (std::int64_t i = 0; i < dst_count(); ++i) {
      const double offset = bias == nullptr ? 0.0 : bias[i / plane % shape_.outputs];
      dst[i] = static_cast<float>(sums[at(i)] + offset);
    }
  }

  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    std::vector<double> sums(at(shape_.batch * shape_.channels * product(shape_.src_size)), 0.0);
    for_each_term([&](std::int64_t s, std::int64_t w, std::int64_t d) {
      sums[at(s)] += static_cast<double>(dst_grad[d]) * weights[w];
    });
    for (std::size_t i = 0; i < sums.size(); ++i) src_grad[i] = static_cast<float>(sums[i]);
  }

  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    if (weights_grad != nullptr) {
      const std::int64_t rows = shape_.channels / shape_.groups * product(shape_.kernel);
      std::vector<double> sums(at(shape_.outputs * rows), 0.0);
      for_each_term([&](std::int64_t s, std::int64_t w, std::int64_t d) {
        sums[at(w)] += static_cast<double>(dst_grad[d]) * src[s];
      });
      for (std::size_t i = 0; i < sums.size(); ++i) weights_grad[i] += static_cast<float>(sums[i]);
    }
    if (bias_grad == nullptr) return;
    const std::int64_t plane = product(shape_.dst_size);
    std::vector<double> sums(at(shape_.outputs), 0.0);
    for (std::int64_t i = 0; i < dst_count(); ++i) {
      sums[at(i / plane % shape_.outputs)] += dst_grad[i];
    }
    for (std::size_t i = 0; i < sums.size(); ++i) bias_grad[i] += static_cast<float>(sums[i]);
  }

 private:
  std::int64_t dst_count() const {
    return shape_.batch * shape_.outputs * product(shape_.dst_size);
  }

  // The input index for one output position and kernel position, or -1 in the padding.
  std::int64_t src_index(const std::vector<std::int64_t>& output,
                         const std::vector<std::int64_t>& kernel) const {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < output.size(); ++i) {
      const std::int64_t x =
          output[i] * shape_.stride[i] - shape_.pad[i] + kernel[i] * shape_.dilation[i];
      if (x < 0 || x >= shape_.src_size[i]) return -1;
      index = index * shape_.src_size[i] + x;
    }
    return index;
  }

  // Calls visit(input index, weight index, output index) for every product of the definition.
  void for_each_term(
      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) const {
    const std::int64_t src_plane = product(shape_.src_size);
    const std::int64_t dst_plane = product(shape_.dst_size);
    const std::int64_t kernel_plane = product(shape_.kernel);
    const std::int64_t inputs = shape_.channels / shape_.groups;
    const std::int64_t outputs = shape_.outputs / shape_.groups;
    for (std::int64_t d = 0; d < dst_count(); ++d) {
      const std::int64_t o = d / dst_plane % shape_.outputs;
      const std::int64_t b = d / dst_plane / shape_.outputs;
      const auto output = position(d % dst_plane, shape_.dst_size);
      for (std::int64_t k = 0; k < kernel_plane; ++k) {
        const std::int64_t s = src_index(output, position(k, shape_.kernel));
        if (s < 0) continue;
        for (std::int64_t c = 0; c < inputs; ++c) {
          const std::int64_t channel = o / outputs * inputs + c;
          visit((b * shape_.channels + channel) * src_plane + s,
                (o * inputs + c) * kernel_plane + k, d);
        }
      }
    }
  }

  ConvolutionShape shape_;
};

class ReferencePooling final : public Pooling {
 public:
  explicit ReferencePooling(const PoolingShape& shape)
      : shape_(shape), winners_(at(shape.planes * shape.dst_h * shape.dst_w), -1) {}

  void forward(const float* src, float* dst, float* mask) override {
    for_each_window([&](std::int64_t out, const Window& w) {
      const float* plane = src + w.plane * shape_.src_h * shape_.src_w;
      float best = -FLT_MAX;
      double sum = 0.0;
      std::int64_t winner = -1;
      for (std::int64_t y = w.top; y < w.bottom; ++y) {
        for (std::int64_t x = w.left; x < w.right; ++x) {
          const float value = plane[y * shape_.src_w + x];
          sum += value;
          if (value > best) best = value, winner = y * shape_.src_w + x;
        }
      }
      const bool is_max = shape_.method == PoolingShape::Method::kMax;
      dst[out] = is_max ? best : static_cast<float>(sum / w.size);
      if (is_max) winners_[at(out)] = winner;
      if (mask != nullptr) mask[out] = static_cast<float>(winner);
    });
  }

  void backward(const float* dst_grad, float* src_grad) override {
    const std::int64_t plane_count = shape_.src_h * shape_.src_w;
    std::vector<double> sums(at(shape_.planes * plane_count), 0.0);
    for_each_window([&](std::int64_t out, const Window& w) {
      if (shape_.method == PoolingShape::Method::kMax) {
        if (winners_[at(out)] >= 0)
          sums[at(w.plane * plane_count + winners_[at(out)])] += dst_grad[out];
        return;
      }
      for (std::int64_t y = w.top; y < w.bottom; ++y) {
        for (std::int64_t x = w.left; x < w.right; ++x) {
          sums[at(w.plane * plane_count + y * shape_.src_w + x)] += dst_grad[out] / w.size;
        }
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) src_grad[i] = static_cast<float>(sums[i]);
  }

 private:
  // A window clipped to the image; `size` counts what lies in the padded image.
  struct Window {
    std::int64_t plane, top, bottom, left, right;
    double size;
  };

  void for_each_window(const std::function<void(std::int64_t, const Window&)>& visit) const {
    const PoolingShape& s = shape_;
    for (std::int64_t out = 0; out < s.planes * s.dst_h * s.dst_w; ++out) {
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
  std::vector<std::int64_t> winners_;
};

class ReferenceLrn final : public Lrn {
 public:
  explicit ReferenceLrn(const LrnShape& shape) : shape_(shape) {}

  void forward(const float* src, float* dst) override {
    for (std::int64_t i = 0; i < count(); ++i) {
      dst[i] = static_cast<float>(src[i] * std::pow(scale(src, i), -double{shape_.beta}));
    }
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    std::vector<double> sums(at(count()), 0.0);
    const double weight = 2.0 * shape_.alpha * shape_.beta / static_cast<double>(shape_.size);
    for (std::int64_t i = 0; i < count(); ++i) {
      const double s = scale(src, i);
      const double factor = std::pow(s, -double{shape_.beta});
      sums[at(i)] += dst_grad[i] * factor;
      for_each_neighbour(i, [&](std::int64_t j) {
        sums[at(j)] -= weight * src[j] * dst_grad[i] * src[i] * factor / s;
      });
    }
    for (std::int64_t i = 0; i < count(); ++i) src_grad[i] = static_cast<float>(sums[at(i)]);
  }

 private:
  std::int64_t count() const { return shape_.batch * shape_.channels * shape_.spatial; }

  template <class Visit>
  void for_each_neighbour(std::int64_t index, const Visit& visit) const {
    const std::int64_t channel = index / shape_.spatial % shape_.channels;
    for (std::int64_t step = -(shape_.size / 2); step <= shape_.size / 2; ++step) {
      if (channel + step < 0 || channel + step >= shape_.channels) continue;
      visit(index + step * shape_.spatial);
    }
  }

  double scale(const float* src, std::int64_t index) const {
    double sum = 0.0;
    for_each_neighbour(index, [&](std::int64_t j) { sum += double{src[j]} * src[j]; });
    return shape_.k + shape_.alpha / static_cast<double>(shape_.size) * sum;
  }

  LrnShape shape_;
};

}  // namespace

std::unique_ptr<Convolution> make_reference_convolution(const ConvolutionShape& shape) {
  return std::make_unique<ReferenceConvolution>(shape);
}

std::unique_ptr<Pooling> make_reference_pooling(const PoolingShape& shape) {
  return std::make_unique<ReferencePooling>(shape);
}

std::unique_ptr<Lrn> make_reference_lrn(const LrnShape& shape) {
  return std::make_unique<ReferenceLrn>(shape);
}

}  // namespace speedo
