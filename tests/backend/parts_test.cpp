// Backends that divide work into the same parts give the same bits with any number of threads.

#include <speedo/cpu/cpu_backend.hpp>

#include "backend/conformance.hpp"
#include "cpu/thread_pool.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

std::unique_ptr<Backend> make(int threads, int parts) {
  auto made = make_cpu_backend(CpuOptions{.threads = threads, .parts = parts});
  REQUIRE(made.has_value());
  return std::move(*made);
}

void require_same_bits(const Run& run) {
  for (const int parts : {3, kPinnedParts}) {
    Workbench alone(make(1, parts));
    const std::vector<float> expected = run(alone);
    for (const int threads : {2, 3, 5, 8}) {
      CAPTURE(parts, threads);
      Workbench several(make(threads, parts));
      REQUIRE(run(several) == expected);
    }
  }
}

TEST_CASE("a pool works on each part once, whatever its threads") {
  for (int threads = 1; threads <= 5; ++threads) {
    cpu::ThreadPool pool(threads, 5);
    REQUIRE(pool.size() == 5);
    for (const std::int64_t count : {0, 1, 4, 5, 17}) {
      CAPTURE(threads, count);
      std::vector<int> times(static_cast<std::size_t>(count)), part_of(times.size(), -1);
      pool.split(count, 1, [&](std::int64_t begin, std::int64_t end, int part) {
        for (std::int64_t i = begin; i < end; ++i) {
          ++times[static_cast<std::size_t>(i)];
          part_of[static_cast<std::size_t>(i)] = part;
        }
      });
      const auto division = pool.divide(count, 1);
      for (std::int64_t i = 0; i < count; ++i) {
        REQUIRE(times[static_cast<std::size_t>(i)] == 1);
        const int part = part_of[static_cast<std::size_t>(i)];
        REQUIRE(division.begin(part) <= i);
        REQUIRE(i < division.end(part));
      }
    }
  }
}

TEST_CASE("matrix products have the bits of their parts") {
  const auto [m, n, k] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{130, 170, 150}, {13, 515, 1031}, {600, 40, 77}}));
  const Op a_op = GENERATE(Op::kNone, Op::kTranspose);
  const Op b_op = GENERATE(Op::kNone, Op::kTranspose);
  const Backend::GemmShape shape{m, n, k};
  require_same_bits([&](Workbench& bench) {
    float* c = bench.blank(shape.m * shape.n);
    bench.backend().gemm({a_op, b_op, shape, 0.7F, 0.0F}, bench.put(test_values(shape.m * shape.k)),
                         bench.put(test_values(shape.k * shape.n, -1, 1, 2)), c);
    return bench.get(c, shape.m * shape.n);
  });
}

TEST_CASE("convolutions have the bits of their parts") {
  const auto [batch, channels, outputs] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{1, 3, 5}, {7, 16, 32}, {13, 5, 20}, {20, 1, 8}}));
  ConvolutionShape shape = convolution_shape(batch, channels, outputs, {11, 9}, {3, 3}, 1);
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kChannelsLast);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  CAPTURE(batch, channels, outputs);
  require_same_bits([&](Workbench& bench) {
    const ArrayShape src{batch, channels, 99}, dst{batch, outputs, 63};
    auto made = bench.backend().make_convolution(shape);
    REQUIRE(made.has_value());
    const std::int64_t weights = outputs * channels * 9;
    const float* x = bench.put_array(src, shape.src_layout, test_values(src));
    const float* y_grad = bench.put_array(dst, shape.dst_layout, test_values(dst, -1, 1, 2));
    float* w = bench.put(test_values(weights, -1, 1, 3));
    float* bias = bench.put(test_values(outputs, -1, 1, 4));
    float* y = bench.blank_array(dst, shape.dst_layout);
    float* x_grad = bench.blank_array(src, shape.src_layout);
    (*made)->forward(x, w, bias, y);
    (*made)->backward_data(y_grad, w, x_grad);
    (*made)->backward_weights(x, y_grad, w, bias);
    return join(join(bench.get_array(dst, shape.dst_layout, y),
                     bench.get_array(src, shape.src_layout, x_grad)),
                join(bench.get(w, weights), bench.get(bias, outputs)));
  });
}

TEST_CASE("sums over arrays, rows and channels have the bits of their parts") {
  const ArrayShape array{13, 21, 150};
  require_same_bits([&](Workbench& bench) {
    const std::int64_t count = array.storage_count({});
    const float* x = bench.put(test_values(array));
    const float* y = bench.put(test_values(array, -1, 1, 2));
    float* rows = bench.put(test_values(array.channels * array.spatial));
    float* gamma = bench.put(test_values(array.channels));
    float* beta = bench.put(test_values(array.channels));
    const ChannelView as_rows{{array.batch, array.channels * array.spatial, 1}, {}};
    bench.backend().sum_channels(as_rows, nullptr, x, nullptr, rows);
    bench.backend().sum_channels({array, {}}, x, y, gamma, beta);
    const auto dot = static_cast<float>(bench.backend().dot(count, x, y));
    return join(join(bench.get(rows, array.channels * array.spatial), {dot}),
                join(bench.get(gamma, array.channels), bench.get(beta, array.channels)));
  });
}

}  // namespace
}  // namespace speedo
