// Local response normalization across channels, in one pass over tiles of neighbouring positions.
//
// scale = k + alpha/size * sum of x^2 over the window;  y = x * scale^-beta
// dx = dy * scale^-beta - 2 alpha beta / size * x * sum over the window of (dy * y / scale)
//
// The sums are computed afresh for each channel: a running sum that adds one channel and subtracts
// another loses all digits after a large one has passed. The scale is computed again in the
// backward pass: that is cheaper than writing it to memory and reading it back.

#include "cpu/lrn.hpp"

#include <algorithm>

#include "base/simd.hpp"
#include "cpu/elementwise.hpp"

namespace speedo::cpu {
namespace {

constexpr std::int64_t kTile = 128;

SPEEDO_MULTIVERSION
void add_squares(std::int64_t n, float factor, const float* x, float* sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += factor * x[i] * x[i];
}

SPEEDO_MULTIVERSION
void ratio(std::int64_t n, const float* x, const float* dy, const float* factor, const float* scale,
           float* result) {
  for (std::int64_t i = 0; i < n; ++i) result[i] = dy[i] * x[i] * factor[i] / scale[i];
}

SPEEDO_MULTIVERSION
void gradient(std::int64_t n, float weight, const float* x, const float* dy, const float* factor,
              const float* sum, float* dx) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] * factor[i] - weight * x[i] * sum[i];
}

class TiledLrn final : public Lrn {
 public:
  TiledLrn(const LrnShape& shape, ThreadPool& pool, Scratch& scratch)
      : shape_(shape), pool_(pool), scratch_(scratch) {}

  Result<void> prepare() { return scratch_.reserve(2 * kTile * (shape_.channels + 1)); }

  void forward(const float* src, float* dst) override {
    for_each_tile([&](std::int64_t at, std::int64_t width, int thread) {
      float* scale = scratch_.block(thread);
      for (std::int64_t c = 0; c < shape_.channels; ++c) {
        const std::int64_t here = at + c * shape_.spatial;
        compute_scale(c, width, src + at, scale);
        power(width, scale, -shape_.beta, scale);
        multiply(width, src + here, scale, dst + here);
      }
    });
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    for_each_tile([&](std::int64_t at, std::int64_t width, int thread) {
      float* scale = scratch_.block(thread);
      float* factors = scale + 2 * kTile;                 // one row a channel
      float* ratios = factors + kTile * shape_.channels;  // likewise
      for (std::int64_t c = 0; c < shape_.channels; ++c) {
        const std::int64_t here = at + c * shape_.spatial;
        compute_scale(c, width, src + at, scale);
        power(width, scale, -shape_.beta, factors + c * kTile);
        ratio(width, src + here, dst_grad + here, factors + c * kTile, scale, ratios + c * kTile);
      }
      const float weight = 2.0F * shape_.alpha * shape_.beta / static_cast<float>(shape_.size);
      for (std::int64_t c = 0; c < shape_.channels; ++c) {
        const std::int64_t here = at + c * shape_.spatial;
        float* sum = scale;
        fill(width, 0.0F, sum);
        for (std::int64_t j = first(c); j < last(c); ++j) {
          axpby(width, 1.0F, ratios + j * kTile, 1.0F, sum);
        }
        gradient(width, weight, src + here, dst_grad + here, factors + c * kTile, sum,
                 src_grad + here);
      }
    });
  }

 private:
  std::int64_t first(std::int64_t c) const {
    return std::max<std::int64_t>(0, c - shape_.size / 2);
  }
  std::int64_t last(std::int64_t c) const {
    return std::min(shape_.channels, c + shape_.size / 2 + 1);
  }

  // `src`: the tile in channel 0.
  void compute_scale(std::int64_t c, std::int64_t width, const float* src, float* scale) const {
    fill(width, shape_.k, scale);
    const float factor = shape_.alpha / static_cast<float>(shape_.size);
    for (std::int64_t j = first(c); j < last(c); ++j) {
      add_squares(width, factor, src + j * shape_.spatial, scale);
    }
  }

  template <class Body>
  void for_each_tile(const Body& body) {
    const std::int64_t tiles = (shape_.spatial + kTile - 1) / kTile;
    pool_.split(shape_.batch * tiles, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t start = i % tiles * kTile;
        body(i / tiles * shape_.channels * shape_.spatial + start,
             std::min(kTile, shape_.spatial - start), thread);
      }
    });
  }

  LrnShape shape_;
  ThreadPool& pool_;
  Scratch& scratch_;
};

}  // namespace

Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape, ThreadPool& pool, Scratch& scratch) {
  auto made = std::make_unique<TiledLrn>(shape, pool, scratch);
  SPEEDO_TRY(made->prepare());
  return std::unique_ptr<Lrn>(std::move(made));
}

}  // namespace speedo::cpu
