#include "support/reference/reference_windows.hpp"

#include <algorithm>
#include <cfloat>
#include <functional>
#include <vector>

#include <speedo/base/random.hpp>

#include "support/reference/reference_position.hpp"

namespace speedo {
namespace {

using Sizes = std::vector<std::int64_t>;

// The place within a channel that a kernel position reads for an output; -1 in the padding.
std::int64_t place_of(const ConvolutionShape& shape, const Sizes& output, const Sizes& kernel) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    const std::int64_t x =
        output[i] * shape.stride[i] - shape.pad[i] + kernel[i] * shape.dilation[i];
    if (x < 0 || x >= shape.src_size[i]) return -1;
    place = place * shape.src_size[i] + x;
  }
  return place;
}

// Calls visit(index in the matrices, index in src or -1).
void for_each_element(const ConvolutionShape& shape,
                      const std::function<void(std::int64_t, std::int64_t)>& visit) {
  const std::int64_t plane = product(shape.src_size);
  const std::int64_t kernels = product(shape.kernel), columns = product(shape.dst_size);
  const std::int64_t rows = shape.batch * shape.channels * kernels;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Sizes kernel = position(row % kernels, shape.kernel);
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t place = place_of(shape, position(column, shape.dst_size), kernel);
      visit(row * columns + column, place < 0 ? -1 : row / kernels * plane + place);
    }
  }
}

// Calls visit(output index, source indices of the window in row order, first index of its plane).
void for_each_window(const PoolingShape& s,
                     const std::function<void(std::int64_t, const Sizes&, std::int64_t)>& visit) {
  for (std::int64_t out = 0; out < s.batch * s.channels * s.dst_h * s.dst_w; ++out) {
    const std::int64_t start = out / (s.dst_h * s.dst_w) * s.src_h * s.src_w;
    const std::int64_t y = out / s.dst_w % s.dst_h * s.stride_h, x = out % s.dst_w * s.stride_w;
    Sizes places;
    for (std::int64_t row = y; row < std::min(y + s.kernel_h, s.src_h); ++row) {
      for (std::int64_t column = x; column < std::min(x + s.kernel_w, s.src_w); ++column) {
        places.push_back(start + row * s.src_w + column);
      }
    }
    visit(out, places, start);
  }
}

void clear(const PoolingShape& s, float* src_grad) {
  std::fill_n(src_grad, s.batch * s.channels * s.src_h * s.src_w, 0.0F);
}

}  // namespace

void reference_unfold(const ConvolutionShape& shape, const float* src, float* matrices) {
  for_each_element(shape, [&](std::int64_t to, std::int64_t from) {
    matrices[to] = from < 0 ? 0.0F : src[from];
  });
}

void reference_fold(const ConvolutionShape& shape, const float* matrices, float* src) {
  const std::int64_t count = shape.batch * shape.channels * product(shape.src_size);
  std::vector<double> sums(static_cast<std::size_t>(count), 0.0);
  for_each_element(shape, [&](std::int64_t from, std::int64_t to) {
    if (to >= 0) sums[static_cast<std::size_t>(to)] += matrices[from];
  });
  for (std::size_t i = 0; i < sums.size(); ++i) src[i] = static_cast<float>(sums[i]);
}

void reference_sample_windows(const PoolingShape& shape, std::uint64_t seed, const float* src,
                              float* dst, float* winners) {
  for_each_window(shape, [&](std::int64_t out, const Sizes& places, std::int64_t start) {
    const auto bits = mix64(seed + static_cast<std::uint64_t>(out)) >> 40U;
    double sum = 0.0, running = 0.0;
    for (const std::int64_t place : places) sum += src[place];
    const double wanted = static_cast<double>(bits) / 16777216.0 * sum;
    std::int64_t winner = places.back();
    for (const std::int64_t place : places) {
      running += src[place];
      if (running < wanted) continue;
      winner = place;
      break;
    }
    dst[out] = src[winner];
    winners[out] = static_cast<float>(winner - start);
  });
}

void reference_sample_windows_backward(const PoolingShape& shape, const float* winners,
                                       const float* dst_grad, float* src_grad) {
  clear(shape, src_grad);
  for_each_window(shape, [&](std::int64_t out, const Sizes&, std::int64_t start) {
    src_grad[start + static_cast<std::int64_t>(winners[out])] += dst_grad[out];
  });
}

void reference_weigh_windows(const PoolingShape& shape, const float* src, float* dst) {
  for_each_window(shape, [&](std::int64_t out, const Sizes& places, std::int64_t) {
    double sum = FLT_MIN, squares = 0.0;
    for (const std::int64_t place : places) {
      sum += src[place];
      squares += double{src[place]} * src[place];
    }
    dst[out] = static_cast<float>(squares / sum);
  });
}

void reference_weigh_windows_backward(const PoolingShape& shape, const float* src, const float* dst,
                                      const float* dst_grad, float* src_grad) {
  clear(shape, src_grad);
  for_each_window(shape, [&](std::int64_t out, const Sizes& places, std::int64_t) {
    double sum = FLT_MIN;
    for (const std::int64_t place : places) sum += src[place];
    for (const std::int64_t place : places) {
      const double slope = (2.0 * src[place] - dst[out]) / sum;
      src_grad[place] += static_cast<float>(slope * dst_grad[out]);
    }
  });
}

}  // namespace speedo
