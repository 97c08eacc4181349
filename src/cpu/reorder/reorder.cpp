// A copy between two layouts is divided into pieces: the channels that lie in one block of the
// source and in one of the target. With neither block 1, a piece's channels are neighbours on both
// sides, and rows are copied. With one block 1, its positions are neighbours on one side and its
// channels on the other: a transposition, in tiles that fit the registers.

#include "cpu/reorder/reorder.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/support/simd.hpp"
#ifndef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/reorder/reorder.cpp"
#endif
#include <hwy/foreach_target.h>

#include "cpu/support/simd.inl"

HWY_BEFORE_NAMESPACE();
namespace speedo::cpu::HWY_NAMESPACE {
namespace {

// target[j * target_stride + i] = source[i * source_stride + j] for i < rows, j < columns.
void transpose_scalar(std::int64_t rows, std::int64_t columns, const float* source,
                      std::int64_t source_stride, float* target, std::int64_t target_stride) {
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      target[j * target_stride + i] = source[i * source_stride + j];
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr std::int64_t kTile = 1;

HWY_INLINE void transpose_tile(const float* source, std::int64_t, float* target, std::int64_t) {
  *target = *source;
}
#elif HWY_CAP_GE256
constexpr std::int64_t kTile = 8;

// 8 x 8: the halves of rows i and i + 4 side by side, then 4 x 4 in each half.
HWY_INLINE void transpose_tile(const float* source, std::int64_t source_stride, float* target,
                               std::int64_t target_stride) {
  const hn::CappedTag<float, 8> d;
  const hn::CappedTag<double, 4> dd;
  const hn::Half<decltype(d)> half;
  const auto load = [&](std::int64_t i, std::int64_t j) {
    const float* at = source + i * source_stride + j;
    return hn::Combine(d, hn::LoadU(half, at + 4 * source_stride), hn::LoadU(half, at));
  };
  for (std::int64_t j = 0; j < 8; j += 4) {
    const auto a = load(0, j), b = load(1, j), c = load(2, j), e = load(3, j);
    const auto ab_low = hn::BitCast(dd, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(dd, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(dd, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(dd, hn::InterleaveUpper(d, c, e));
    float* to = target + j * target_stride;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_low, ce_low)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_low, ce_low)), d, to + target_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_high, ce_high)), d,
               to + 2 * target_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_high, ce_high)), d,
               to + 3 * target_stride);
  }
}
#else
constexpr std::int64_t kTile = 4;

HWY_INLINE void transpose_tile(const float* source, std::int64_t source_stride, float* target,
                               std::int64_t target_stride) {
  const hn::CappedTag<float, 4> d;
  const hn::CappedTag<double, 2> dd;
  const auto a = hn::LoadU(d, source), b = hn::LoadU(d, source + source_stride);
  const auto c = hn::LoadU(d, source + 2 * source_stride);
  const auto e = hn::LoadU(d, source + 3 * source_stride);
  const auto ab_low = hn::BitCast(dd, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(dd, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(dd, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(dd, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_low, ce_low)), d, target);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_low, ce_low)), d, target + target_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_high, ce_high)), d,
             target + 2 * target_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_high, ce_high)), d,
             target + 3 * target_stride);
}
#endif

// Tiles go along the positions first on the side whose rows are the blocks, so that whole rows of a
// block are written or read one after another.
HWY_FLATTEN void transpose_kernel(std::int64_t rows, std::int64_t columns, const float* source,
                                  std::int64_t source_stride, float* target,
                                  std::int64_t target_stride) {
  const std::int64_t whole_rows = rows / kTile * kTile;
  const std::int64_t whole_columns = columns / kTile * kTile;
  const bool rows_first = target_stride <= source_stride;
  const std::int64_t outer = rows_first ? whole_columns : whole_rows;
  const std::int64_t inner = rows_first ? whole_rows : whole_columns;
  for (std::int64_t a = 0; a < outer; a += kTile) {
    for (std::int64_t b = 0; b < inner; b += kTile) {
      const std::int64_t i = rows_first ? b : a, j = rows_first ? a : b;
      transpose_tile(source + i * source_stride + j, source_stride, target + j * target_stride + i,
                     target_stride);
    }
  }
  transpose_scalar(rows - whole_rows, whole_columns, source + whole_rows * source_stride,
                   source_stride, target + whole_rows, target_stride);
  transpose_scalar(rows, columns - whole_columns, source + whole_columns, source_stride,
                   target + whole_columns * target_stride, target_stride);
}

HWY_FLATTEN void copy_rows_kernel(std::int64_t rows, std::int64_t columns, const float* source,
                                  std::int64_t source_stride, float* target,
                                  std::int64_t target_stride) {
  with_row_tag(columns, [&](auto d) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* from = source + r * source_stride;
      float* to = target + r * target_stride;
      for_each_vector(d, columns, [&](std::int64_t c, auto access) {
        access.store(access.load(d, from + c), d, to + c);
      });
    }
  });
}

}  // namespace
}  // namespace speedo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace speedo::cpu {
namespace {

HWY_EXPORT(transpose_kernel);
HWY_EXPORT(copy_rows_kernel);

// Floats that make it worth waking another thread; and positions of one piece of work, so that what
// it reads and writes stays near while it is transposed.
constexpr std::int64_t kGrainFloats = 16384;
constexpr std::int64_t kPositions = 256;

struct Side {
  std::int64_t block, sample;  // `sample`: floats of one sample
};

class Reorder {
 public:
  Reorder(const ArrayShape& shape, const float* source, Layout from, float* target, Layout to)
      : channels_(shape.channels), positions_(shape.spatial), source_(source), target_(target) {
    // With one position, channels lie side by side in a plain array too.
    if (positions_ == 1 && from.is_plain()) from = {channels_};
    if (positions_ == 1 && to.is_plain()) to = {channels_};
    from_ = {from.block, from.channels(channels_) * positions_};
    to_ = {to.block, to.channels(channels_) * positions_};
    wide_ = std::max(from_.block, to_.block);
    groups_ = (channels_ + wide_ - 1) / wide_;
    chunks_ = (positions_ + kPositions - 1) / kPositions;
  }

  // Pieces of work: a sample's channels of one of the wider blocks, at some positions.
  std::int64_t works(std::int64_t batch) const { return batch * groups_ * chunks_; }
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, kGrainFloats / (wide_ * std::min(kPositions, positions_)));
  }

  void work(std::int64_t index) const {
    const std::int64_t first = index % chunks_ * kPositions;
    const std::int64_t count = std::min(kPositions, positions_ - first);
    const std::int64_t group = index / chunks_ % groups_;
    const std::int64_t sample = index / chunks_ / groups_;
    const float* source = source_ + sample * from_.sample;
    float* target = target_ + sample * to_.sample;
    const std::int64_t begin = group * wide_;
    const std::int64_t end = std::min(channels_, begin + wide_);
    if (from_.block == 1) {
      HWY_DYNAMIC_DISPATCH(transpose_kernel)
      (end - begin, count, source + begin * positions_ + first, positions_,
       target + begin * positions_ + first * to_.block, to_.block);
    } else if (to_.block == 1) {
      HWY_DYNAMIC_DISPATCH(transpose_kernel)
      (count, end - begin, source + begin * positions_ + first * from_.block, from_.block,
       target + begin * positions_ + first, positions_);
    } else {
      copy_blocks(begin, end, first, count, source, target);
    }
    clear_padding(group, first, count, target);
  }

 private:
  void copy_blocks(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t count,
                   const float* source, float* target) const {
    for (std::int64_t c = begin; c < end;) {
      const std::int64_t run =
          std::min({end - c, from_.block - c % from_.block, to_.block - c % to_.block});
      HWY_DYNAMIC_DISPATCH(copy_rows_kernel)
      (count, run, source + offset(from_, c, first), from_.block, target + offset(to_, c, first),
       to_.block);
      c += run;
    }
  }

  // The group with the last channel clears what follows it in its block.
  void clear_padding(std::int64_t group, std::int64_t first, std::int64_t count,
                     float* target) const {
    const std::int64_t used = channels_ % to_.block;
    if (group + 1 < groups_ || used == 0) return;
    float* row = target + offset(to_, channels_, first);
    for (std::int64_t r = 0; r < count; ++r) {
      std::fill(row + r * to_.block, row + r * to_.block + (to_.block - used), 0.0F);
    }
  }

  std::int64_t offset(const Side& side, std::int64_t channel, std::int64_t position) const {
    return channel / side.block * side.block * positions_ + position * side.block +
           channel % side.block;
  }

  std::int64_t channels_, positions_;
  const float* source_;
  float* target_;
  Side from_{}, to_{};
  std::int64_t wide_ = 1, groups_ = 1, chunks_ = 1;
};

}  // namespace

void reorder(const ArrayShape& shape, const float* source, Layout from, float* target, Layout to) {
  if (from == to) {
    std::memcpy(target, source, static_cast<std::size_t>(shape.storage_count(to)) * sizeof(float));
    return;
  }
  const Reorder all(shape, source, from, target, to);
  for (std::int64_t i = 0; i < all.works(shape.batch); ++i) all.work(i);
}

void reorder(ThreadPool& pool, const ArrayShape& shape, const float* source, Layout from,
             float* target, Layout to) {
  if (from == to) {
    pool.split(shape.storage_count(to), kGrainFloats,
               [&](std::int64_t first, std::int64_t last, int) {
                 std::memcpy(target + first, source + first,
                             static_cast<std::size_t>(last - first) * sizeof(float));
               });
    return;
  }
  const Reorder all(shape, source, from, target, to);
  pool.split(all.works(shape.batch), all.grain(), [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) all.work(i);
  });
}

const float* in_plain_order(ThreadPool* pool, const ArrayShape& shape, const float* source,
                            Layout from, float* copy) {
  if (from.is_plain()) return source;
  if (pool != nullptr) {
    reorder(*pool, shape, source, from, copy, Layout{});
  } else {
    reorder(shape, source, from, copy, Layout{});
  }
  return copy;
}

}  // namespace speedo::cpu
#endif
