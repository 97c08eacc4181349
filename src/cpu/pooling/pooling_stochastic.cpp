#include "cpu/pooling/pooling_stochastic.hpp"

#include <algorithm>
#include <cfloat>

#include <speedo/base/random.hpp>

namespace speedo::cpu {
namespace {

constexpr std::int64_t kPlanesOfPart = 4;  // per part of the work

// What of a window lies in the image.
struct Window {
  std::int64_t top, bottom, left, right;
};

// Calls visit(number of the window in the plane, window).
template <class Visit>
void for_each_window(const PoolingShape& s, const Visit& visit) {
  std::int64_t number = 0;
  for (std::int64_t y = 0; y < s.dst_h; ++y) {
    const std::int64_t top = y * s.stride_h, bottom = std::min(top + s.kernel_h, s.src_h);
    for (std::int64_t x = 0; x < s.dst_w; ++x) {
      const std::int64_t left = x * s.stride_w;
      visit(number++, Window{top, bottom, left, std::min(left + s.kernel_w, s.src_w)});
    }
  }
}

// Calls visit(index in the plane) until it returns false.
template <class Visit>
void for_each_place(const PoolingShape& s, const Window& w, const Visit& visit) {
  for (std::int64_t row = w.top; row < w.bottom; ++row) {
    for (std::int64_t place = row * s.src_w + w.left; place < row * s.src_w + w.right; ++place) {
      if (!visit(place)) return;
    }
  }
}

double sum_of(const PoolingShape& s, const Window& w, const float* plane) {
  double sum = 0.0;
  for_each_place(s, w, [&](std::int64_t place) {
    sum += static_cast<double>(plane[place]);
    return true;
  });
  return sum;
}

// Calls body(plane, first source element, first result) for each plane.
template <class Body>
void for_each_plane(ThreadPool& pool, const PoolingShape& s, const Body& body) {
  pool.split(s.batch * s.channels, kPlanesOfPart, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t plane = first; plane < last; ++plane) {
      body(plane * s.src_h * s.src_w, plane * s.dst_h * s.dst_w);
    }
  });
}

}  // namespace

void sample_windows(ThreadPool& pool, const PoolingShape& shape, std::uint64_t seed,
                    const float* src, float* dst, float* winners) {
  for_each_plane(pool, shape, [&](std::int64_t from, std::int64_t to) {
    const float* const plane = src + from;
    for_each_window(shape, [&](std::int64_t number, const Window& window) {
      const std::uint64_t bits = mix64(seed + static_cast<std::uint64_t>(to + number)) >> 40U;
      const double wanted = static_cast<double>(bits) / 16777216.0 * sum_of(shape, window, plane);
      double running = 0.0;
      std::int64_t winner = 0;
      for_each_place(shape, window, [&](std::int64_t place) {
        winner = place;
        running += static_cast<double>(plane[place]);
        return running < wanted;
      });
      dst[to + number] = plane[winner];
      winners[to + number] = static_cast<float>(winner);
    });
  });
}

void sample_windows_backward(ThreadPool& pool, const PoolingShape& shape, const float* winners,
                             const float* dst_grad, float* src_grad) {
  const std::int64_t results = shape.dst_h * shape.dst_w;
  for_each_plane(pool, shape, [&](std::int64_t from, std::int64_t to) {
    float* const plane = src_grad + from;
    std::fill_n(plane, shape.src_h * shape.src_w, 0.0F);
    for (std::int64_t i = to; i < to + results; ++i) {
      plane[static_cast<std::int64_t>(winners[i])] += dst_grad[i];
    }
  });
}

void weigh_windows(ThreadPool& pool, const PoolingShape& shape, const float* src, float* dst) {
  for_each_plane(pool, shape, [&](std::int64_t from, std::int64_t to) {
    const float* const plane = src + from;
    for_each_window(shape, [&](std::int64_t number, const Window& window) {
      double sum = static_cast<double>(FLT_MIN), squares = 0.0;
      for_each_place(shape, window, [&](std::int64_t place) {
        const auto value = static_cast<double>(plane[place]);
        sum += value;
        squares += value * value;
        return true;
      });
      dst[to + number] = static_cast<float>(squares / sum);
    });
  });
}

void weigh_windows_backward(ThreadPool& pool, const PoolingShape& shape, const float* src,
                            const float* dst, const float* dst_grad, float* src_grad) {
  for_each_plane(pool, shape, [&](std::int64_t from, std::int64_t to) {
    const float* const plane = src + from;
    float* const grad = src_grad + from;
    std::fill_n(grad, shape.src_h * shape.src_w, 0.0F);
    for_each_window(shape, [&](std::int64_t number, const Window& window) {
      const double sum = sum_of(shape, window, plane) + static_cast<double>(FLT_MIN);
      const auto mean = static_cast<double>(dst[to + number]);
      const double share = static_cast<double>(dst_grad[to + number]) / sum;
      for_each_place(shape, window, [&](std::int64_t place) {
        const double slope = 2.0 * static_cast<double>(plane[place]) - mean;
        grad[place] += static_cast<float>(slope * share);
        return true;
      });
    });
  });
}

}  // namespace speedo::cpu
