// Milliseconds per operation of the CPU backend, for the shapes of the published nets, beside the
// matrix product rate that this machine reaches in the same run.
//
//   bench_layers [threads] [part of a name]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>

#include "cpu/cpu_backend.hpp"

namespace speedo {
namespace {

constexpr double kSecondsPerCase = 0.3;
constexpr int kRunsMin = 3;

// With one thread, processor time: what else runs on the machine then hardly matters. With several,
// the time on the wall.
double now_ms(int threads) {
  if (threads == 1) return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC;
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(time).count();
}

class Bench {
 public:
  Bench(int threads, std::string filter)
      : threads_(threads), backend_(make_cpu_backend(threads)), filter_(std::move(filter)) {}

  void run_gemm(std::int64_t size);
  void run_convolution(const std::string& name, std::int64_t batch, std::int64_t channels,
                       std::int64_t size, std::int64_t outputs, std::int64_t kernel,
                       std::int64_t stride = 1, std::int64_t pad = 0, std::int64_t groups = 1);
  void run_pooling(const std::string& name, PoolingShape::Method method, std::int64_t planes,
                   std::int64_t size, std::int64_t dst, std::int64_t kernel, std::int64_t stride,
                   std::int64_t pad = 0);
  void run_lrn(const std::string& name, std::int64_t batch, std::int64_t channels,
               std::int64_t size);
  void run_inner_product(const std::string& name, std::int64_t batch, std::int64_t inputs,
                         std::int64_t outputs);

 private:
  // The shortest of several calls, after one that is not counted.
  double best_ms(const std::function<void()>& call) const {
    call();
    double best = 0.0;
    const double start = now_ms(threads_);
    for (int i = 0; i < kRunsMin || now_ms(threads_) - start < kSecondsPerCase * 1e3; ++i) {
      const double before = now_ms(threads_);
      call();
      const double taken = now_ms(threads_) - before;
      best = i == 0 ? taken : std::min(best, taken);
    }
    return best;
  }

  bool wanted(const std::string& name) const { return name.find(filter_) != std::string::npos; }

  float* array(std::int64_t count) {
    auto buffer = backend_->allocate(static_cast<std::size_t>(count) * sizeof(float));
    if (!buffer) {
      std::fprintf(stderr, "%s\n", buffer.error().message.c_str());
      std::exit(1);
    }
    buffers_.push_back(std::move(*buffer));
    float* values = buffers_.back().as_floats();
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) * 0.1F - 0.8F;
    return values;
  }

  int threads_;
  std::unique_ptr<Backend> backend_;
  std::string filter_;
  std::vector<Buffer> buffers_;
};

void Bench::run_gemm(std::int64_t size) {
  if (!wanted("sgemm")) return;
  const float* a = array(size * size);
  const float* b = array(size * size);
  float* c = array(size * size);
  const double ms = best_ms([&] {
    backend_->gemm(Op::kNone, Op::kNone, {size, size, size}, 1.0F, a, b, 0.0F, c);
  });
  const double flops = 2.0 * static_cast<double>(size * size * size);
  std::printf("sgemm %ld^3: %.1f GFLOP/s\n", static_cast<long>(size), flops / ms / 1e6);
  buffers_.clear();
}

void Bench::run_convolution(const std::string& name, std::int64_t batch, std::int64_t channels,
                            std::int64_t size, std::int64_t outputs, std::int64_t kernel,
                            std::int64_t stride, std::int64_t pad, std::int64_t groups) {
  if (!wanted(name)) return;
  const std::int64_t dst = (size + 2 * pad - kernel) / stride + 1;
  ConvolutionShape shape;
  shape.batch = batch, shape.channels = channels, shape.outputs = outputs, shape.groups = groups;
  shape.src_size = {size, size}, shape.dst_size = {dst, dst}, shape.kernel = {kernel, kernel};
  shape.stride = {stride, stride}, shape.pad = {pad, pad}, shape.dilation = {1, 1};
  auto made = backend_->make_convolution(shape);
  if (!made) return;
  Convolution& convolution = **made;
  const std::int64_t weight_count = outputs * channels / groups * kernel * kernel;
  float* src = array(batch * channels * size * size);
  float* weights = array(weight_count);
  float* bias = array(outputs);
  float* out = array(batch * outputs * dst * dst);
  const double forward = best_ms([&] { convolution.forward(src, weights, bias, out); });
  const double data = best_ms([&] { convolution.backward_data(out, weights, src); });
  const double gradient = best_ms([&] { convolution.backward_weights(src, out, weights, bias); });
  const double flops = 2.0 * static_cast<double>(weight_count * batch * dst * dst);
  std::printf("%-28s %8.2f %8.2f %8.2f   %6.1f %6.1f %6.1f\n", name.c_str(), forward, data,
              gradient, flops / forward / 1e6, flops / data / 1e6, flops / gradient / 1e6);
  buffers_.clear();
}

void Bench::run_pooling(const std::string& name, PoolingShape::Method method, std::int64_t planes,
                        std::int64_t size, std::int64_t dst, std::int64_t kernel,
                        std::int64_t stride, std::int64_t pad) {
  if (!wanted(name)) return;
  auto made = backend_->make_pooling(
      {method, planes, size, size, dst, dst, kernel, kernel, stride, stride, pad, pad});
  if (!made) return;
  float* src = array(planes * size * size);
  float* out = array(planes * dst * dst);
  const double forward = best_ms([&] { (*made)->forward(src, out, nullptr); });
  const double backward = best_ms([&] { (*made)->backward(out, src); });
  std::printf("%-28s %8.2f %8.2f\n", name.c_str(), forward, backward);
  buffers_.clear();
}

void Bench::run_lrn(const std::string& name, std::int64_t batch, std::int64_t channels,
                    std::int64_t size) {
  if (!wanted(name)) return;
  auto made = backend_->make_lrn({batch, channels, size * size, 5, 1e-4F, 0.75F, 1.0F});
  if (!made) return;
  const std::int64_t count = batch * channels * size * size;
  float* src = array(count);
  float* out = array(count);
  float* grad = array(count);
  const double forward = best_ms([&] { (*made)->forward(src, out); });
  const double backward = best_ms([&] { (*made)->backward(src, out, out, grad); });
  std::printf("%-28s %8.2f %8.2f\n", name.c_str(), forward, backward);
  buffers_.clear();
}

void Bench::run_inner_product(const std::string& name, std::int64_t batch, std::int64_t inputs,
                              std::int64_t outputs) {
  if (!wanted(name)) return;
  float* src = array(batch * inputs);
  float* weights = array(inputs * outputs);
  float* out = array(batch * outputs);
  const double forward = best_ms([&] {
    backend_->gemm(Op::kNone, Op::kTranspose, {batch, outputs, inputs}, 1.0F, src, weights, 0.0F,
                   out);
  });
  const double data = best_ms([&] {
    backend_->gemm(Op::kNone, Op::kNone, {batch, inputs, outputs}, 1.0F, out, weights, 0.0F, src);
  });
  const double gradient = best_ms([&] {
    backend_->gemm(Op::kTranspose, Op::kNone, {outputs, inputs, batch}, 1e-9F, out, src, 1.0F,
                   weights);
  });
  std::printf("%-28s %8.2f %8.2f %8.2f\n", name.c_str(), forward, data, gradient);
  buffers_.clear();
}

void run_small_nets(Bench& bench) {
  const auto max = PoolingShape::Method::kMax;
  const auto average = PoolingShape::Method::kAverage;
  bench.run_convolution("lenet/conv1", 64, 1, 28, 20, 5);
  bench.run_convolution("lenet/conv2", 64, 20, 12, 50, 5);
  bench.run_pooling("lenet/pool1", max, 64 * 20, 24, 12, 2, 2);
  bench.run_pooling("lenet/pool2", max, 64 * 50, 8, 4, 2, 2);
  bench.run_inner_product("lenet/ip1", 64, 800, 500);
  bench.run_inner_product("lenet/ip2", 64, 500, 10);
  bench.run_convolution("cifar10/conv1", 100, 3, 32, 32, 5, 1, 2);
  bench.run_convolution("cifar10/conv2", 100, 32, 16, 32, 5, 1, 2);
  bench.run_convolution("cifar10/conv3", 100, 32, 8, 64, 5, 1, 2);
  bench.run_pooling("cifar10/pool1", max, 100 * 32, 32, 16, 3, 2);
  bench.run_pooling("cifar10/pool2", average, 100 * 32, 16, 8, 3, 2);
  bench.run_pooling("cifar10/pool3", average, 100 * 64, 8, 4, 3, 2);
}

void run_large_nets(Bench& bench) {
  const auto max = PoolingShape::Method::kMax;
  bench.run_convolution("alexnet/conv1", 32, 3, 227, 96, 11, 4);
  bench.run_convolution("alexnet/conv2", 32, 96, 27, 256, 5, 1, 2, 2);
  bench.run_convolution("alexnet/conv3", 32, 256, 13, 384, 3, 1, 1);
  bench.run_convolution("alexnet/conv4", 32, 384, 13, 384, 3, 1, 1, 2);
  bench.run_pooling("alexnet/pool1", max, 32 * 96, 55, 27, 3, 2);
  bench.run_lrn("alexnet/norm1", 32, 96, 55);
  bench.run_inner_product("alexnet/fc6", 32, 9216, 4096);
  bench.run_convolution("googlenet/conv1", 32, 3, 224, 64, 7, 2, 3);
  bench.run_convolution("googlenet/conv2_reduce", 32, 64, 56, 64, 1);
  bench.run_convolution("googlenet/conv2", 32, 64, 56, 192, 3, 1, 1);
  bench.run_convolution("googlenet/4a_3x3", 32, 96, 14, 208, 3, 1, 1);
  bench.run_convolution("googlenet/5b_1x1", 32, 832, 7, 384, 1);
  bench.run_convolution("googlenet/5b_3x3", 32, 192, 7, 384, 3, 1, 1);
  bench.run_pooling("googlenet/pool1", max, 32 * 64, 112, 56, 3, 2);
  bench.run_pooling("googlenet/3a_pool", max, 32 * 192, 28, 28, 3, 1, 1);
  bench.run_pooling("googlenet/4a_pool", max, 32 * 480, 14, 14, 3, 1, 1);
  bench.run_pooling("googlenet/5a_pool", max, 32 * 832, 7, 7, 3, 1, 1);
  bench.run_pooling("googlenet/pool4", max, 32 * 832, 14, 7, 3, 2);
  bench.run_lrn("googlenet/norm1", 32, 64, 56);
  bench.run_lrn("googlenet/norm2", 32, 192, 56);
}

}  // namespace
}  // namespace speedo

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  speedo::Bench bench(threads, argc > 2 ? argv[2] : "");
  bench.run_gemm(1024);
  std::printf("%-28s %8s %8s %8s   %s\n", "ms", "forward", "data", "weights", "GFLOP/s");
  speedo::run_small_nets(bench);
  speedo::run_large_nets(bench);
  return 0;
}
