#include "support/reference/reference_backend.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <speedo/backend/host_device.hpp>

#include "support/reference/reference_elements.hpp"
#include "support/reference/reference_layout.hpp"
#include "support/reference/reference_lstm.hpp"
#include "support/reference/reference_operations.hpp"
#include "support/reference/reference_rows.hpp"
#include "support/reference/reference_windows.hpp"
#include "support/reference/rounding.hpp"

namespace speedo {
namespace {

class ReferenceDevice final : public HostDevice {
 public:
  explicit ReferenceDevice(int* allocations) : allocations_(allocations) {}

  Result<Buffer> allocate(std::size_t bytes) override {
    if (bytes == 0) return Buffer();
    if (allocations_ != nullptr) ++*allocations_;
    const std::size_t rounded = (bytes + 63) / 64 * 64;
    void* memory = bytes > PTRDIFF_MAX ? nullptr : std::aligned_alloc(64, rounded);
    if (memory == nullptr) {
      return Error{ErrorCode::kFull, "no memory for " + std::to_string(bytes) + " bytes"};
    }
    std::memset(memory, 0, rounded);
    return Buffer(memory, bytes, [](void* gone) { std::free(gone); });
  }
  void upload(float* target, std::span<const float> source) override {
    std::copy(source.begin(), source.end(), target);
  }
  void download(std::span<float> target, const float* source) override {
    std::copy_n(source, target.size(), target.begin());
  }

 private:
  int* allocations_;
};

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend(LayoutKind preferred, int* allocations, std::uint64_t rounding_seed)
      : device_(allocations),
        preferred_(preferred),
        rounded_(rounding_seed) {}

  std::string_view name() const override { return "reference"; }
  Device& device() override { return device_; }

  void copy(Elements n, const float* x, float* y) override {
    for (std::int64_t i = 0; i < n.floats(); ++i) y[i] = x[i];
  }
  void fill(Elements n, float value, float* x) override { std::fill_n(x, n.floats(), value); }

  void gemm(const Gemm& product, const float* a, const float* b, float* c) override {
    const auto [a_op, b_op, s, alpha, beta] = product;
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < s.k; ++k) {
          sum += double{a_op == Op::kNone ? a[i * s.k + k] : a[k * s.m + i]} *
                 double{b_op == Op::kNone ? b[k * s.n + j] : b[j * s.k + k]};
        }
        float& target = c[i * s.n + j];
        const double before = beta == 0.0F ? 0.0 : double{beta} * target;
        target = static_cast<float>(alpha * sum + before);
      }
    }
  }

  void map(const UnaryOp& op, Elements n, const float* x, float* y) override {
    for (std::int64_t i = 0; i < n.floats(); ++i) y[i] = mapped(op, x[i]);
  }
  void map_backward(const UnaryOp& op, Elements n, const float* x, const float* y,
                    const float* y_grad, float* x_grad) override {
    const BackwardReads reads = speedo::backward_reads(op);
    for (std::int64_t i = 0; i < n.floats(); ++i) {
      const double slope = reference_slope(op, reads.src ? x[i] : NAN, reads.dst ? y[i] : NAN);
      x_grad[i] = static_cast<float>(slope * double{y_grad[i]});
    }
  }
  void zip(const BinaryOp& op, Elements n, const ZipArrays& arrays) override {
    const bool reads_y = op.kind != BinaryKind::kSum || op.b != 0.0F;
    for (std::int64_t i = 0; i < n.floats(); ++i) {
      const float x = arrays.x[i], y = reads_y ? arrays.y[i] : 0.0F;
      const bool is_x = x > y;
      if (arrays.winners != nullptr && (is_x || op.b >= 0.0F)) {
        arrays.winners[i] = is_x ? op.a : op.b;
      }
      const float z = reference_value(op, x, y);
      arrays.z[i] = op.activation ? mapped(*op.activation, z) : z;
    }
  }
  double reduce(ReduceOp op, Elements n, const float* x, const float* y) override {
    return reference_reduction(op, n.floats(), x, y);
  }

  void copy_rows(std::int64_t rows, Elements columns, const float* source,
                 std::int64_t source_stride, float* target, std::int64_t target_stride) override {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns.floats(); ++c) {
        target[r * target_stride + c] = source[r * source_stride + c];
      }
    }
  }

  void reduce_rows(ReduceOp op, const RowsShape& shape, float scale, const float* x,
                   float* y) override {
    reference_reduce_rows(op, shape, scale, x, y);
  }
  void normalize_rows(const RowNorm& norm, const float* x, float* y, float* deviation) override {
    reference_normalize_rows(norm, x, y, deviation);
  }
  void normalize_rows_backward(const RowNorm& norm, const float* y, const float* deviation,
                               const float* y_grad, float* x_grad) override {
    reference_normalize_rows_backward(norm, y, deviation, y_grad, x_grad);
  }
  void unfold(const ConvolutionShape& shape, const float* src, float* matrices) override {
    reference_unfold(shape, src, matrices);
  }
  void fold(const ConvolutionShape& shape, const float* matrices, float* src) override {
    reference_fold(shape, matrices, src);
  }
  void sample_windows(const PoolingShape& shape, std::uint64_t seed, const float* src, float* dst,
                      float* winners) override {
    reference_sample_windows(shape, seed, src, dst, winners);
  }
  void sample_windows_backward(const PoolingShape& shape, const float* winners,
                               const float* dst_grad, float* src_grad) override {
    reference_sample_windows_backward(shape, winners, dst_grad, src_grad);
  }
  void weigh_windows(const PoolingShape& shape, const float* src, float* dst) override {
    reference_weigh_windows(shape, src, dst);
  }
  void weigh_windows_backward(const PoolingShape& shape, const float* src, const float* dst,
                              const float* dst_grad, float* src_grad) override {
    reference_weigh_windows_backward(shape, src, dst, dst_grad, src_grad);
  }

  LayoutKind preferred_layout(std::span<const ConvolutionShape> /*shapes*/) const override {
    return preferred_;
  }
  bool convolves_plain(const ConvolutionShape& /*shape*/) const override { return true; }
  void reorder(const ArrayShape& shape, const float* source, Layout from, float* target,
               Layout to) override {
    write_plain(shape, to, read_plain(shape, from, source).data(), target);
  }

  void scale_channels(const ChannelView& view, const ChannelScale& scale, const float* x,
                      float* y) override {
    map_channels(view, x, y, [&](std::int64_t c, float value) {
      const float gamma = scale.gamma == nullptr ? 1.0F : scale.gamma[c];
      const float result = gamma * value + (scale.beta == nullptr ? 0.0F : scale.beta[c]);
      return scale.activation ? mapped(*scale.activation, result) : result;
    });
  }
  void sum_channels(const ChannelView& view, const float* x, const float* y_grad, float* gamma_grad,
                    float* beta_grad) override {
    for_each_channel(view, [&](std::int64_t c, const std::vector<std::int64_t>& places) {
      double sum = 0.0, product = 0.0;
      for (const std::int64_t i : places) {
        sum += y_grad[i];
        if (x != nullptr) product += double{y_grad[i]} * x[i];
      }
      if (gamma_grad != nullptr) gamma_grad[c] += static_cast<float>(product);
      if (beta_grad != nullptr) beta_grad[c] += static_cast<float>(sum);
    });
  }
  void prelu_forward(const ChannelView& view, const float* slope, const float* x,
                     float* y) override {
    map_channels(view, x, y, [&](std::int64_t c, float value) {
      return value > 0.0F ? value : slope[c] * value;
    });
  }
  void prelu_backward(const ChannelView& view, const float* slope, const float* x,
                      const float* y_grad, float* x_grad, float* slope_grad) override {
    for_each_channel(view, [&](std::int64_t c, const std::vector<std::int64_t>& places) {
      double sum = 0.0;
      for (const std::int64_t i : places) {
        const float grad = y_grad[i];
        if (!(x[i] > 0.0F)) sum += double{grad} * x[i];
        if (x_grad != nullptr) x_grad[i] = x[i] > 0.0F ? grad : slope[c] * grad;
      }
      if (slope_grad != nullptr) slope_grad[c] += static_cast<float>(sum);
    });
    if (x_grad != nullptr) clear_padding(view, x_grad);
  }

  void lstm_forward(const LstmShape& shape, const LstmForward& step) override {
    reference_lstm_forward(shape, step);
  }
  void lstm_backward(const LstmShape& shape, const LstmBackward& step) override {
    reference_lstm_backward(shape, step);
  }

  void dropout_mask(const ChannelView& view, float ratio, std::uint64_t seed,
                    float* mask) override {
    std::fill_n(mask, view.shape.storage_count(view.layout), 0.0F);
    for_each_element(view.shape, view.layout, [&](std::int64_t i, std::int64_t at) {
      const double uniform =
          static_cast<double>(mix64(seed + static_cast<std::uint64_t>(i)) >> 40U) / 16777216.0;
      mask[at] = uniform >= double{ratio} ? 1.0F / (1.0F - ratio) : 0.0F;
    });
  }

  void softmax_forward(SoftmaxShape s, const float* x, float* y) override {
    for_each_column(s, [&](std::int64_t start) {
      double highest = -HUGE_VAL, sum = 0.0;
      std::vector<double> values;
      for (std::int64_t k = 0; k < s.classes; ++k) {
        highest = std::max(highest, double{x[start + k * s.inner]});
      }
      for (std::int64_t k = 0; k < s.classes; ++k) {
        values.push_back(std::exp(x[start + k * s.inner] - highest));
        sum += values.back();
      }
      for (std::int64_t k = 0; k < s.classes; ++k) {
        y[start + k * s.inner] = rounded_(values[static_cast<std::size_t>(k)] / sum);
      }
    });
  }
  void softmax_backward(SoftmaxShape s, const float* y, const float* y_grad,
                        float* x_grad) override {
    for_each_column(s, [&](std::int64_t start) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < s.classes; ++k) {
        sum += double{y[start + k * s.inner]} * y_grad[start + k * s.inner];
      }
      for (std::int64_t k = 0; k < s.classes; ++k) {
        const std::int64_t i = start + k * s.inner;
        x_grad[i] = static_cast<float>((y_grad[i] - sum) * y[i]);
      }
    });
  }
  LabelLoss softmax_loss(SoftmaxShape s, const float* probability, const float* labels,
                         std::optional<int> ignored) override {
    LabelLoss loss;
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
      const auto label = static_cast<std::int64_t>(labels[i]);
      if (ignored && label == *ignored) continue;
      if (label < 0 || label >= s.classes) {
        loss.bad_index = i;
        loss.bad_label = labels[i];
        return loss;
      }
      const float p = probability[start_of(s, i) + label * s.inner];
      loss.sum -= std::log(double{std::max(p, FLT_MIN)});
      loss.valid += 1;
    }
    return loss;
  }
  void softmax_loss_backward(SoftmaxShape s, const float* probability, const float* labels,
                             std::optional<int> ignored, float scale, float* grad) override {
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
      const auto label = static_cast<std::int64_t>(labels[i]);
      for (std::int64_t k = 0; k < s.classes; ++k) {
        const std::int64_t at = start_of(s, i) + k * s.inner;
        const double error = probability[at] - (k == label ? 1.0 : 0.0);
        grad[at] = ignored && label == *ignored ? 0.0F : static_cast<float>(scale * error);
      }
    }
  }

  LabelLoss hinge_loss(const HingeShape& shape, const float* scores, const float* labels) override {
    return reference_hinge_loss(shape, scores, labels);
  }
  void hinge_loss_backward(const HingeShape& shape, const float* scores, const float* labels,
                           float scale, float* grad) override {
    reference_hinge_loss_backward(shape, scores, labels, scale, grad);
  }
  SigmoidLoss sigmoid_loss(std::int64_t n, const float* x, const float* target,
                           std::optional<int> ignored) override {
    return reference_sigmoid_loss(n, x, target, ignored);
  }
  void sigmoid_loss_backward(std::int64_t n, const float* x, const float* target,
                             std::optional<int> ignored, float scale, float* grad) override {
    reference_sigmoid_loss_backward(n, x, target, ignored, scale, grad);
  }

  void sgd_update(std::int64_t n, const SgdStep& s, const float* weights, float* history,
                  float* grad) override {
    for (std::int64_t i = 0; i < n; ++i) {
      const double g = reference_gradient(s, weights[i], grad[i]);
      history[i] = static_cast<float>(double{s.momentum} * history[i] + s.rate * g);
      grad[i] = s.sign * history[i];
    }
  }
  void sgd_step(std::int64_t n, const SgdStep& s, float* weights, float* history,
                float* grad) override {
    sgd_update(n, s, weights, history, grad);
    for (std::int64_t i = 0; i < n; ++i) weights[i] -= grad[i];
  }
  void adaptive_update(std::int64_t n, const AdaptiveStep& step, const float* weights,
                       AdaptiveHistories histories, float* grad) override {
    reference_adaptive(n, step, weights, histories, grad);
  }
  void adaptive_step(std::int64_t n, const AdaptiveStep& step, float* weights,
                     AdaptiveHistories histories, float* grad) override {
    reference_adaptive(n, step, weights, histories, grad);
    for (std::int64_t i = 0; i < n; ++i) weights[i] -= grad[i];
  }

  // Not all, so that what a backend does not fuse is seen to be left alone.
  bool fuses(Producer producer, const UnaryOp& activation) const override {
    const bool is_relu = activation.kind == UnaryKind::kRelu;
    return is_relu || (producer == Producer::kConvolution && activation.kind != UnaryKind::kTanh);
  }
  bool adds(Producer producer) const override { return producer == Producer::kBatchNorm; }
  BackwardReads backward_reads(const PoolingShape& shape) const override {
    const bool is_max = shape.method == PoolingShape::Method::kMax;
    return {.src = is_max, .dst = is_max};
  }
  BackwardReads backward_reads(const LrnShape&) const override { return {.src = true}; }
  BackwardReads backward_reads(const BatchNormShape& shape) const override {
    return reference_backward_reads(shape);
  }
  Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) override {
    return make_reference_convolution(shape);
  }
  Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape) override {
    return make_reference_pooling(shape);
  }
  Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape) override {
    return make_reference_lrn(shape);
  }
  Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape) override {
    return make_reference_batch_norm(shape, rounded_);
  }
  std::int64_t scratch_bytes() const override { return 0; }
  Result<void> provide_scratch() override { return {}; }

 private:
  // Index of class 0 at the i-th of outer x inner positions.
  static std::int64_t start_of(SoftmaxShape s, std::int64_t i) {
    return i / s.inner * s.classes * s.inner + i % s.inner;
  }
  template <class Visit>
  static void for_each_column(SoftmaxShape s, const Visit& visit) {
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) visit(start_of(s, i));
  }

  // Calls visit(channel, indices of its elements).
  template <class Visit>
  static void for_each_channel(const ChannelView& view, const Visit& visit) {
    const ArrayShape& shape = view.shape;
    for (std::int64_t c = 0; c < shape.channels; ++c) {
      std::vector<std::int64_t> places;
      for (std::int64_t n = 0; n < shape.batch; ++n) {
        for (std::int64_t p = 0; p < shape.spatial; ++p) {
          places.push_back(layout_index(shape, view.layout, n, c, p));
        }
      }
      visit(c, places);
    }
  }
  static void clear_padding(const ChannelView& view, float* array) {
    write_plain(view.shape, view.layout, read_plain(view.shape, view.layout, array).data(), array);
  }
  template <class F>
  static void map_channels(const ChannelView& view, const float* x, float* y, const F& f) {
    for_each_channel(view, [&](std::int64_t c, const std::vector<std::int64_t>& places) {
      for (const std::int64_t i : places) y[i] = f(c, x[i]);
    });
    clear_padding(view, y);
  }

  float mapped(const UnaryOp& op, float x) {
    const double value = reference_value(op, x);
    return is_rounded_by_no_device(op) ? static_cast<float>(value) : rounded_(value);
  }

  ReferenceDevice device_;
  LayoutKind preferred_;
  Rounding rounded_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(LayoutKind preferred, int* allocations,
                                                std::uint64_t rounding_seed) {
  return std::make_unique<ReferenceBackend>(preferred, allocations, rounding_seed);
}

}  // namespace speedo
