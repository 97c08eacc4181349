// scale = k + alpha/size * sum of x^2 over the window;  y = x * scale^-beta
// dx = dy * scale^-beta - 2 alpha beta / size * x * sum over the window of (dy * y / scale)

#include "cpu/lrn/lrn.hpp"

#include <algorithm>
#include <string>

#include "cpu/isa.hpp"
#include "cpu/lrn/lrn_kernels.hpp"

namespace speedo::cpu {
namespace {

// What positions of a tile may take of the first-level cache.
constexpr std::int64_t kTileFloats = 6144;
constexpr std::int64_t kPositionsMax = 16;

class AnyLrn : public Lrn {
 public:
  OperationInfo info() const override { return {.kernel = std::string(name(cpu_isa()))}; }

 protected:
  AnyLrn(const LrnShape& shape, ThreadPool& pool, Scratch& scratch)
      : shape_(shape),
        size_(lrn_reach(shape.size, shape.channels)),
        pool_(pool),
        scratch_(scratch) {}

  std::int64_t spatial() const { return shape_.h * shape_.w; }
  std::int64_t sample_floats() const { return shape_.layout.channels(shape_.channels) * spatial(); }
  LrnNumbers numbers() const {
    const auto size = static_cast<float>(shape_.size);
    const bool within = shape_.region == LrnShape::Region::kWithin;
    return {within ? 1.0F : shape_.k, shape_.alpha / (within ? size * size : size), shape_.beta};
  }

  LrnShape shape_;
  std::int64_t size_;  // of windows across channels, as far as there are channels
  ThreadPool& pool_;
  Scratch& scratch_;
};

// Across channels, plain order: tiles of neighbouring positions.
class TileLrn final : public AnyLrn {
 public:
  TileLrn(const LrnShape& shape, ThreadPool& pool, Scratch& scratch)
      : AnyLrn(shape, pool, scratch) {
    scratch_.reserve(lrn_tile_scratch(size_));
  }

  void forward(const float* src, float* dst) override {
    for_each_tile([&](std::int64_t at, const LrnTile& tile, int /*thread*/) {
      lrn_tile_forward(tile, numbers(), src + at, dst + at);
    });
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    for_each_tile([&](std::int64_t at, const LrnTile& tile, int thread) {
      lrn_tile_backward(tile, numbers(), src + at, dst_grad + at, src_grad + at,
                        scratch_.block(thread));
    });
  }

 private:
  template <class Body>
  void for_each_tile(const Body& body) {
    const std::int64_t tiles = (spatial() + kLrnTile - 1) / kLrnTile;
    pool_.split(shape_.batch * tiles, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i % tiles * kLrnTile;
        const LrnTile tile{shape_.channels, size_, spatial(),
                           std::min(kLrnTile, spatial() - first)};
        body(i / tiles * sample_floats() + first, tile, thread);
      }
    });
  }
};

// Across channels, in blocks: a few positions at a time, all their channels.
class RowsLrn final : public AnyLrn {
 public:
  RowsLrn(const LrnShape& shape, ThreadPool& pool, Scratch& scratch)
      : AnyLrn(shape, pool, scratch) {
    const std::int64_t block = shape.layout.block;
    rows_ = {shape.channels,    size_, block, shape.layout.channels(shape.channels) / block,
             spatial() * block, 1};
    rows_.positions = std::clamp<std::int64_t>(kTileFloats / (3 * rows_.pitch()), 1, kPositionsMax);
    scratch_.reserve(lrn_rows_scratch(rows_));
  }

  void forward(const float* src, float* dst) override {
    for_each_tile([&](std::int64_t at, const LrnRows& rows, int thread) {
      lrn_rows_forward(rows, numbers(), src + at, dst + at, scratch_.block(thread));
    });
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    for_each_tile([&](std::int64_t at, const LrnRows& rows, int thread) {
      lrn_rows_backward(rows, numbers(), src + at, dst_grad + at, src_grad + at,
                        scratch_.block(thread));
    });
  }

 private:
  template <class Body>
  void for_each_tile(const Body& body) {
    const std::int64_t tiles = (spatial() + rows_.positions - 1) / rows_.positions;
    pool_.split(shape_.batch * tiles, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i % tiles * rows_.positions;
        LrnRows rows = rows_;
        rows.positions = std::min(rows.positions, spatial() - first);
        body(i / tiles * sample_floats() + first * rows.block, rows, thread);
      }
    });
  }

  LrnRows rows_{};
};

class PlaneLrn final : public AnyLrn {
 public:
  PlaneLrn(const LrnShape& shape, ThreadPool& pool, Scratch& scratch)
      : AnyLrn(shape, pool, scratch),
        plane_{shape.h, shape.w, shape.layout.block, lrn_reach(shape.size, shape.h),
               lrn_reach(shape.size, shape.w)} {
    scratch_.reserve(lrn_plane_scratch(plane_));
  }

  void forward(const float* src, float* dst) override {
    for_each_plane([&](std::int64_t at, int thread) {
      lrn_plane_forward(plane_, numbers(), src + at, dst + at, scratch_.block(thread));
    });
  }

  void backward(const float* src, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    for_each_plane([&](std::int64_t at, int thread) {
      lrn_plane_backward(plane_, numbers(), src + at, dst_grad + at, src_grad + at,
                         scratch_.block(thread));
    });
  }

 private:
  template <class Body>
  void for_each_plane(const Body& body) {
    const std::int64_t floats = spatial() * plane_.block;
    if (floats == 0) return;
    const std::int64_t planes = shape_.batch * sample_floats() / floats;
    pool_.split(planes, 1, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t i = first; i < last; ++i) body(i * floats, thread);
    });
  }

  LrnPlane plane_;
};

}  // namespace

Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape, ThreadPool& pool, Scratch& scratch) {
  std::unique_ptr<Lrn> made;
  if (shape.region == LrnShape::Region::kWithin) {
    made = std::make_unique<PlaneLrn>(shape, pool, scratch);
  } else if (shape.layout.is_plain()) {
    made = std::make_unique<TileLrn>(shape, pool, scratch);
  } else {
    made = std::make_unique<RowsLrn>(shape, pool, scratch);
  }
  return made;
}

}  // namespace speedo::cpu
