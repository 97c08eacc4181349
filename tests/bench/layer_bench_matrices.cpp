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
    backend_->gemm(Op::kNone, Op::kTranspose, {batch, outputs, inputs}, 1.0F, src, weights, 0.0F,
                   out);
  });
  flops(name, "", "data", work, "", [&] {
    backend_->gemm(Op::kNone, Op::kNone, {batch, inputs, outputs}, 1.0F, out, weights, 0.0F, src);
  });
  flops(name, "", "weights", work, "", [&] {
    backend_->gemm(Op::kTranspose, Op::kNone, {outputs, inputs, batch}, 1e-9F, out, src, 1.0F,
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

void LayerBench::dropout(const std::string& name, std::int64_t count) {
  if (!wanted(name)) return;
  float* x = array(count);
  float* mask = array(count);
  float* y = array(count);
  const auto floats = static_cast<double>(count);
  bytes(name, "", "mask", floats, "", [&] { backend_->dropout_mask(count, 0.5F, 7, mask); });
  bytes(name, "", "multiply", 3 * floats, "", [&] { backend_->multiply(count, x, mask, y); });
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
        [&] { backend_->softmax_loss_backward(shape, y, labels, false, 0, 1.0F, x); });
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

}  // namespace speedo::bench
