// The operations that know no layout: matrices and vectors.

#include "bench/layer_bench.hpp"

#include <algorithm>

namespace speedo::bench {

void LayerBench::inner_product(const std::string& name, std::int64_t batch, std::int64_t inputs,
                               std::int64_t outputs) {
  if (!wanted(name)) return;
  float* src = array(batch * inputs);
  float* weights = array(inputs * outputs);
  float* out = array(batch * outputs);
  const double work = 2.0 * product({batch, inputs, outputs});
  flops(name, "", "forward", work, "", [&] {
    backend_->gemm({Op::kNone, Op::kTranspose, {batch, outputs, inputs}, 1.0F, 0.0F}, src, weights,
                   out);
  });
  flops(name, "", "data", work, "", [&] {
    backend_->gemm({Op::kNone, Op::kNone, {batch, inputs, outputs}, 1.0F, 0.0F}, out, weights, src);
  });
  flops(name, "", "weights", work, "", [&] {
    backend_->gemm({Op::kTranspose, Op::kNone, {outputs, inputs, batch}, 1e-9F, 1.0F}, out, src,
                   weights);
  });
  free_arrays();
}

void LayerBench::relu(const std::string& name, std::int64_t count) {
  if (!wanted(name)) return;
  float* x = array(count);
  float* y = array(count);
  const UnaryOp relu{UnaryKind::kRelu};
  const auto floats = static_cast<double>(count);
  bytes(name, "", "forward", 2 * floats, "", [&] { backend_->map(relu, count, x, x); });
  bytes(name, "", "backward", 3 * floats, "",
        [&] { backend_->map_backward(relu, count, nullptr, x, y, y); });
  free_arrays();
}

void LayerBench::sum(const std::string& name, std::int64_t count) {
  if (!wanted(name)) return;
  float* x = array(count);
  float* y = array(count);
  bytes(name, "", "add", 3.0 * static_cast<double>(count), "",
        [&] { backend_->axpby(count, 1e-9F, x, 1.0F, y); });
  free_arrays();
}

void LayerBench::vectors(const std::string& name, std::int64_t count) {
  if (!wanted(name)) return;
  float* a = array(count);
  float* b = array(count);
  float* y = array(count);
  const auto n = static_cast<double>(count);
  const auto map = [&](const std::string& pass, const UnaryOp& op, const float* from) {
    bytes(name, "", pass, 2 * n, "", [&, op] { backend_->map(op, count, from, y); });
  };
  const auto zip = [&](const std::string& pass, const BinaryOp& op, const ZipArrays& arrays) {
    bytes(name, "", pass, 3 * n, "", [&, op] { backend_->zip(op, count, arrays); });
  };
  const auto reduce = [&](const std::string& pass, ReduceOp op, double arrays) {
    bytes(name, "", pass, arrays * n, "", [&, op] { backend_->reduce(op, count, a, b); });
  };
  map("scale", affine(0.5F), a);
  map("shift", affine(1.0F, 1e-9F), y);
  zip("add", {BinaryKind::kSum, 1e-9F, 1.0F}, {a, y, y});
  zip("axpby", {BinaryKind::kSum, 1e-9F, 0.99F}, {a, y, y});
  zip("product", {BinaryKind::kProduct}, {a, b, y});
  zip("quotient", {BinaryKind::kQuotient}, {a, b, y});
  zip("maximum", {BinaryKind::kMaximum, 0.0F, 1.0F}, {a, b, y, y});
  zip("chosen", {BinaryKind::kChosen, 1.0F}, {a, b, y});
  map("square", power(2.0F), a);
  map("power 0.5", power(0.5F), b);
  map("power 3", power(3.0F), b);
  map("power 0.3", power(0.3F), b);
  reduce("dot", ReduceOp::kDot, 2);
  reduce("square sum", ReduceOp::kSquareSum, 1);
  reduce("abs sum", ReduceOp::kAbsSum, 1);
  reduce("finite", ReduceOp::kAllFinite, 1);
  for (const std::int64_t columns : {10, 256, 500, 4096}) {
    const ChannelView rows{{count / columns, columns, 1}, {}};
    const std::string width = std::to_string(columns);
    bytes(name, width, "add row", 2 * n, "", [&] {
      backend_->scale_channels(rows, {nullptr, a}, y, y);
    });
    bytes(name, width, "sum rows", n, "",
          [&] { backend_->sum_channels(rows, nullptr, b, nullptr, y); });
  }
  zip("add, then relu", {BinaryKind::kSum, 0.5F, 0.5F, UnaryOp{UnaryKind::kRelu}}, {a, b, y});
  free_arrays();
}

void LayerBench::dropout(const std::string& name, std::int64_t count) {
  if (!wanted(name)) return;
  float* x = array(count);
  float* mask = array(count);
  float* y = array(count);
  const auto floats = static_cast<double>(count);
  const ChannelView line{{1, count}, {}};
  bytes(name, "", "mask", floats, "", [&] { backend_->dropout_mask(line, 0.5F, 7, mask); });
  bytes(name, "", "product", 3 * floats, "", [&] {
    backend_->zip({BinaryKind::kProduct}, count, {x, mask, y});
  });
  free_arrays();
}

void LayerBench::concat(const std::string& name, std::int64_t batch,
                        const std::vector<std::int64_t>& parts) {
  if (!wanted(name)) return;
  std::int64_t total = 0;
  for (const std::int64_t part : parts) total += part;
  float* to = array(batch * total);
  float* from = array(batch * total);
  bytes(name, "", "forward", 2.0 * product({batch, total}), "", [&] {
    std::int64_t offset = 0;
    for (const std::int64_t part : parts) {
      backend_->copy_rows(batch, part, from + batch * offset, part, to + offset, total);
      offset += part;
    }
  });
  free_arrays();
}

void LayerBench::softmax_loss(const std::string& name, std::int64_t batch, std::int64_t classes) {
  if (!wanted(name)) return;
  const Backend::SoftmaxShape shape{batch, classes, 1};
  float* x = array(batch * classes);
  float* y = array(batch * classes);
  float* labels = array(batch);
  std::fill(labels, labels + batch, 3.0F);
  const double floats = product({batch, classes});
  bytes(name, "", "forward", 2 * floats, "", [&] { backend_->softmax_forward(shape, x, y); });
  bytes(name, "", "backward", 2 * floats, "",
        [&] { backend_->softmax_loss_backward(shape, y, labels, std::nullopt, 1.0F, x); });
  free_arrays();
}

void LayerBench::other_losses(const std::string& name, std::int64_t batch, std::int64_t classes) {
  if (!wanted(name)) return;
  const Backend::HingeShape shape{batch, classes, true};
  const std::int64_t count = batch * classes;
  float* x = array(count);
  float* target = array(count);
  float* grad = array(count);
  float* labels = array(batch);
  std::fill(labels, labels + batch, 3.0F);
  const auto floats = static_cast<double>(count);
  bytes(name, "", "hinge forward", floats, "", [&] { backend_->hinge_loss(shape, x, labels); });
  bytes(name, "", "hinge backward", 2 * floats, "",
        [&] { backend_->hinge_loss_backward(shape, x, labels, 1.0F, grad); });
  bytes(name, "", "sigmoid forward", 2 * floats, "",
        [&] { backend_->sigmoid_loss(count, x, target, -1); });
  bytes(name, "", "sigmoid backward", 3 * floats, "",
        [&] { backend_->sigmoid_loss_backward(count, x, target, -1, 1.0F, grad); });
  free_arrays();
}

void LayerBench::rows(const std::string& name, std::int64_t rows, std::int64_t columns) {
  if (!wanted(name)) return;
  const Backend::RowNorm norm{{rows, columns}, 1e-9F};
  float* x = array(rows * columns);
  float* y = array(rows * columns);
  float* deviation = array(rows);
  const double floats = product({rows, columns});
  bytes(name, "", "sum", floats, "",
        [&] { backend_->reduce_rows(ReduceOp::kSum, norm.shape, 1.0F, x, deviation); });
  bytes(name, "", "forward", 2 * floats, "",
        [&] { backend_->normalize_rows(norm, x, y, deviation); });
  bytes(name, "", "backward", 3 * floats, "",
        [&] { backend_->normalize_rows_backward(norm, y, deviation, x, x); });
  free_arrays();
}

void LayerBench::unfold(const std::string& name, const ConvolutionSizes& sizes) {
  if (!wanted(name)) return;
  ConvolutionShape shape;
  shape.batch = sizes.batch, shape.channels = sizes.channels;
  shape.src_size = {sizes.size, sizes.size};
  shape.kernel = {sizes.kernel, sizes.kernel};
  shape.stride = {sizes.stride, sizes.stride};
  shape.pad = {sizes.pad, sizes.pad};
  shape.dilation = {1, 1};
  const std::int64_t dst = (sizes.size + 2 * sizes.pad - sizes.kernel) / sizes.stride + 1;
  shape.dst_size = {dst, dst};
  const std::int64_t src_count = sizes.batch * sizes.channels * sizes.size * sizes.size;
  const std::int64_t count = sizes.batch * sizes.channels * sizes.kernel * sizes.kernel * dst * dst;
  float* src = array(src_count);
  float* matrices = array(count);
  const auto floats = static_cast<double>(src_count + count);
  bytes(name, "", "unfold", floats, "", [&] { backend_->unfold(shape, src, matrices); });
  bytes(name, "", "fold", floats, "", [&] { backend_->fold(shape, matrices, src); });
  free_arrays();
}

void LayerBench::sgd(const std::string& name, std::int64_t count) {
  if (!wanted(name)) return;
  float* weights = array(count);
  float* history = array(count);
  float* gradients = array(count);
  const SgdStep step{1e-6F, 0.9F, 1.0F, 5e-4F, 0.0F};
  bytes(name, "", "update", 5.0 * static_cast<double>(count), "",
        [&] { backend_->sgd_update(count, step, weights, history, gradients); });
  bytes(name, "", "step", 6.0 * static_cast<double>(count), "",
        [&] { backend_->sgd_step(count, step, weights, history, gradients); });
  free_arrays();
}

void LayerBench::adaptive(const std::string& name, std::int64_t count) {
  if (!wanted(name)) return;
  float* weights = array(count);
  const AdaptiveHistories histories{array(count), array(count)};
  float* gradients = array(count);
  const std::pair<const char*, AdaptiveKind> rules[] = {{"AdaGrad", AdaptiveKind::kAdaGrad},
                                                        {"RMSProp", AdaptiveKind::kRmsProp},
                                                        {"AdaDelta", AdaptiveKind::kAdaDelta},
                                                        {"Adam", AdaptiveKind::kAdam}};
  for (const auto& [type, kind] : rules) {
    const bool has_second = kind == AdaptiveKind::kAdaDelta || kind == AdaptiveKind::kAdam;
    const AdaptiveStep step{kind, {.rate = 1e-9F, .momentum = 0.9F, .l2 = 5e-4F}, 0.999F, 1e-8F};
    bytes(name, "", type, (has_second ? 8.0 : 6.0) * static_cast<double>(count), "",
          [&] { backend_->adaptive_step(count, step, weights, histories, gradients); });
  }
  free_arrays();
}

}  // namespace speedo::bench
