#include "bench/layer_bench.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include <speedo/cpu/cpu_backend.hpp>

#include "bench/rates.hpp"
#include "measure/gemm_rate.hpp"

namespace speedo::bench {
namespace {

constexpr double kSecondsPerPass = 0.2;
constexpr int kRunsMin = 3;

const char* name_of(LayoutKind kind) {
  switch (kind) {
    case LayoutKind::kPlain:
      break;
    case LayoutKind::kBlocked8:
      return "blocked 8";
    case LayoutKind::kBlocked16:
      return "blocked 16";
    case LayoutKind::kChannelsLast:
      return "channels last";
    case LayoutKind::kChannelsLastBfloat16:
      return "channels last, bf16";
  }
  return "plain";
}

// What the backend would choose for a net whose channels suit blocks.
LayoutKind blocked_kind(const Backend& backend) {
  ConvolutionShape shape;
  shape.batch = 32, shape.channels = 64, shape.outputs = 64;
  shape.src_size = shape.dst_size = {56, 56};
  shape.kernel = {3, 3}, shape.stride = {1, 1}, shape.pad = {1, 1}, shape.dilation = {1, 1};
  return backend.preferred_layout({&shape, 1});
}

// An operation with a kernel for each pass names all of them.
std::string part_of(const std::string& kernels, int part) {
  std::size_t begin = 0;
  while (part-- > 0) {
    const std::size_t bar = kernels.find(" | ", begin);
    if (bar == std::string::npos) return kernels;
    begin = bar + 3;
  }
  return kernels.substr(begin, kernels.find(" | ", begin) - begin);
}

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "bench_layers: %s\n", error.message.c_str());
  std::exit(1);
}

}  // namespace

LayerBench::LayerBench(int threads, std::string filter)
    : threads_(threads), filter_(std::move(filter)), backend_(make_cpu_backend(threads)) {
  kinds_ = {LayoutKind::kPlain, LayoutKind::kChannelsLast};
  const LayoutKind blocked = blocked_kind(*backend_);
  if (std::find(kinds_.begin(), kinds_.end(), blocked) == kinds_.end()) {
    kinds_.insert(kinds_.begin() + 1, blocked);
  }
}

bool LayerBench::wanted(const std::string& name) const {
  return name.starts_with(filter_) || name.find("/" + filter_) != std::string::npos;
}

void LayerBench::print_head() {
  const Result<double> gflops = measure_gemm_rate(*backend_, 1.0);
  if (!gflops) fail(gflops.error());
  ceilings_ = {*gflops, measure_memory(std::max(threads_, 1)).triad};
  std::printf("sgemm %.1f GFLOP/s, triad %.1f GB/s\n", ceilings_.gflops, ceilings_.gb_per_s);
  std::printf("%-28s %-21s %-9s %9s %14s %6s  %s\n", "operation", "layout", "pass", "ms", "rate",
              "share", "kernel");
}

// With one thread, processor time: what else runs on the machine then hardly matters. With several,
// the time on the wall.
double LayerBench::now_ms() const {
  if (threads_ == 1) return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC;
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(time).count();
}

double LayerBench::best_ms(const Call& call) const {
  call();
  double best = 0.0;
  const double start = now_ms();
  for (int i = 0; i < kRunsMin || now_ms() - start < kSecondsPerPass * 1e3; ++i) {
    const double before = now_ms();
    call();
    const double taken = now_ms() - before;
    best = i == 0 ? taken : std::min(best, taken);
  }
  return best;
}

float* LayerBench::array(std::int64_t count) {
  auto buffer = backend_->device().allocate(static_cast<std::size_t>(count) * sizeof(float));
  if (!buffer) fail(buffer.error());
  buffers_.push_back(std::move(*buffer));
  float* values = buffers_.back().as_floats();
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) * 0.1F - 0.8F;
  return values;
}

void LayerBench::line(const std::string& name, const std::string& layout, const std::string& pass,
                      const Work& work, const std::string& kernel) {
  const auto [ms, count, is_flops] = work;
  const double rate = ms > 0.0 ? count / ms / 1e6 : 0.0;
  const double ceiling = is_flops ? ceilings_.gflops : ceilings_.gb_per_s;
  std::printf("%-28s %-21s %-9s %9.3f %6.1f %-7s %4.0f %%  %s\n", name.c_str(), layout.c_str(),
              pass.c_str(), ms, rate, is_flops ? "GFLOP/s" : "GB/s", 100.0 * rate / ceiling,
              kernel.c_str());
  std::fflush(stdout);
}

void LayerBench::flops(const std::string& name, const std::string& layout, const std::string& pass,
                       double count, const std::string& kernel, const Call& call) {
  line(name, layout, pass, {best_ms(call), count, true}, kernel);
}

void LayerBench::bytes(const std::string& name, const std::string& layout, const std::string& pass,
                       double floats, const std::string& kernel, const Call& call) {
  line(name, layout, pass, {best_ms(call), 4.0 * floats, false}, kernel);
}

template <class Made>
Made LayerBench::take(Result<Made> made, const std::string& name, const std::string& layout) {
  if (made) return std::move(*made);
  std::printf("%-28s %-21s %s\n", name.c_str(), layout.c_str(), made.error().message.c_str());
  return {};
}

void LayerBench::convolution(const std::string& name, const ConvolutionSizes& sizes) {
  if (!wanted(name)) return;
  const auto& [batch, channels, size, outputs, kernel, stride, pad, groups, transposed] = sizes;
  const std::int64_t dst = transposed ? (size - 1) * stride + kernel - 2 * pad
                                      : (size + 2 * pad - kernel) / stride + 1;
  const std::int64_t windows = transposed ? size : dst;
  const std::int64_t weight_count = outputs * channels / groups * kernel * kernel;
  const double work = 2.0 * product({weight_count, batch, windows, windows});
  for (const LayoutKind kind : kinds_) {
    ConvolutionShape shape;
    shape.batch = batch, shape.channels = channels, shape.outputs = outputs, shape.groups = groups;
    shape.src_size = {size, size}, shape.dst_size = {dst, dst}, shape.kernel = {kernel, kernel};
    shape.stride = {stride, stride}, shape.pad = {pad, pad}, shape.dilation = {1, 1};
    shape.dst_layout = layout_of(kind, outputs);
    shape.transposed = transposed;
    if (!backend_->convolves_plain(shape)) shape.src_layout = layout_of(kind, channels);
    std::string layout = name_of(kind);
    if (shape.src_layout.is_plain() && !shape.dst_layout.is_plain()) layout = "plain > " + layout;
    auto made = take(backend_->make_convolution(shape), name, layout);
    if (!made) continue;
    const std::string used = made->info().kernel;
    float* src = array(ArrayShape{batch, channels, size * size}.storage_count(shape.src_layout));
    float* weights = array(weight_count);
    float* bias = array(outputs);
    float* out = array(ArrayShape{batch, outputs, dst * dst}.storage_count(shape.dst_layout));
    flops(name, layout, "forward", work, part_of(used, 0),
          [&] { made->forward(src, weights, bias, out); });
    flops(name, layout, "data", work, part_of(used, 1),
          [&] { made->backward_data(out, weights, src); });
    flops(name, layout, "weights", work, part_of(used, 2),
          [&] { made->backward_weights(src, out, weights, bias); });
    free_arrays();
  }
}

void LayerBench::pooling(const std::string& name, PoolingShape::Method method,
                         const PoolingSizes& sizes) {
  if (!wanted(name)) return;
  const auto& [batch, channels, size, dst, kernel, stride, pad] = sizes;
  for (const LayoutKind kind : kinds_) {
    PoolingShape shape;
    shape.method = method, shape.batch = batch, shape.channels = channels;
    shape.src_h = shape.src_w = size, shape.dst_h = shape.dst_w = dst;
    shape.kernel_h = shape.kernel_w = kernel, shape.stride_h = shape.stride_w = stride;
    shape.pad_h = shape.pad_w = pad;
    shape.layout = layout_of(kind, channels);
    auto made = take(backend_->make_pooling(shape), name, name_of(kind));
    if (!made) continue;
    const std::string used = made->info().kernel;
    float* src = array(ArrayShape{batch, channels, size * size}.storage_count(shape.layout));
    float* out = array(ArrayShape{batch, channels, dst * dst}.storage_count(shape.layout));
    const double floats = product({batch, channels, size * size + dst * dst});
    bytes(name, name_of(kind), "forward", floats, used, [&] { made->forward(src, out, nullptr); });
    bytes(name, name_of(kind), "backward", floats, used,
          [&] { made->backward(src, out, out, src); });
    free_arrays();
  }
}

void LayerBench::lrn(const std::string& name, LrnShape::Region region, std::int64_t batch,
                     std::int64_t channels, std::int64_t size, std::int64_t window) {
  if (!wanted(name)) return;
  for (const LayoutKind kind : kinds_) {
    LrnShape shape;
    shape.region = region, shape.batch = batch, shape.channels = channels;
    shape.h = shape.w = size, shape.size = window, shape.alpha = 1e-4F;
    shape.layout = layout_of(kind, channels);
    auto made = take(backend_->make_lrn(shape), name, name_of(kind));
    if (!made) continue;
    const std::string used = made->info().kernel;
    const std::int64_t count = ArrayShape{batch, channels, size * size}.storage_count(shape.layout);
    float* src = array(count);
    float* out = array(count);
    float* grad = array(count);
    const double floats = product({batch, channels, size, size});
    bytes(name, name_of(kind), "forward", 2 * floats, used, [&] { made->forward(src, out); });
    bytes(name, name_of(kind), "backward", 4 * floats, used,
          [&] { made->backward(src, out, out, grad); });
    free_arrays();
  }
}

void LayerBench::batch_norm(const std::string& name, std::int64_t batch, std::int64_t channels,
                            std::int64_t size, bool relu) {
  if (!wanted(name)) return;
  for (const LayoutKind kind : kinds_) {
    BatchNormShape shape;
    shape.batch = batch, shape.channels = channels, shape.spatial = size * size;
    if (relu) shape.activation = UnaryOp{UnaryKind::kRelu};
    shape.layout = layout_of(kind, channels);
    auto made = take(backend_->make_batch_norm(shape), name, name_of(kind));
    if (!made) continue;
    const std::string used = made->info().kernel;
    const std::int64_t count = ArrayShape{batch, channels, size * size}.storage_count(shape.layout);
    float* src = array(count);
    float* out = array(count);
    float* grad = array(count);
    float* gamma = array(channels);
    float* sums = array(4 * channels);
    const double floats = product({batch, channels, size, size});
    // The statistics need a pass of their own.
    bytes(name, name_of(kind), "forward", 3 * floats, used,
          [&] { made->forward(src, gamma, gamma, sums, sums + channels, out); });
    bytes(name, name_of(kind), "backward", (relu ? 7 : 5) * floats, used, [&] {
      made->backward({src, out, grad, sums, sums + channels, gamma, grad, sums + 2 * channels,
                      sums + 3 * channels});
    });
    free_arrays();
  }
}

void LayerBench::scale(const std::string& name, std::int64_t batch, std::int64_t channels,
                       std::int64_t size) {
  if (!wanted(name)) return;
  for (const LayoutKind kind : kinds_) {
    const Layout layout = layout_of(kind, channels);
    const ArrayShape shape{batch, channels, size * size};
    float* x = array(shape.storage_count(layout));
    float* y = array(shape.storage_count(layout));
    float* gamma = array(channels);
    float* beta = array(channels);
    const double floats = product({batch, channels, size, size});
    bytes(name, name_of(kind), "forward", 2 * floats, "", [&] {
      backend_->scale_channels({shape, layout}, {gamma, beta}, x, y);
    });
    bytes(name, name_of(kind), "sums", 2 * floats, "", [&] {
      backend_->sum_channels({shape, layout}, x, y, gamma, beta);
    });
    free_arrays();
  }
}

void LayerBench::reorder(const std::string& name, std::int64_t batch, std::int64_t channels,
                         std::int64_t size) {
  if (!wanted(name)) return;
  const ArrayShape shape{batch, channels, size * size};
  for (const LayoutKind kind : kinds_) {
    if (kind == LayoutKind::kPlain) continue;
    const Layout layout = layout_of(kind, channels);
    float* plain = array(shape.storage_count({}));
    float* native = array(shape.storage_count(layout));
    const double floats = 2.0 * product({batch, channels, size, size});
    bytes(name, name_of(kind), "to", floats, "",
          [&] { backend_->reorder(shape, plain, {}, native, layout); });
    bytes(name, name_of(kind), "to plain", floats, "",
          [&] { backend_->reorder(shape, native, layout, plain, {}); });
    free_arrays();
  }
}

}  // namespace speedo::bench
