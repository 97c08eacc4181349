#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <speedo/backend/layout.hpp>

#include "gpu/launch/launch.hpp"
#include "gpu/support/array.hpp"
#include "gpu/support/elements.hpp"
#include "gpu/support/fold.hpp"

namespace speedo::gpu {

// Two sums over each channel of an array, in doubles, in the same order on every device.
//
// A block of threads sums a piece of a tile: its columns are neighbouring channels, or fours of
// them, its rows the channels' elements in order. Neighbouring threads take neighbouring columns,
// and then rows. Where tiles have several pieces, a second kernel adds those up.

inline constexpr int kSumThreads = 256;
constexpr std::size_t sum_shared_bytes(int lanes) {
  return 2 * kSumThreads * sizeof(double) * static_cast<std::size_t>(lanes);
}

// What terms are made of: an element's, or four neighbours' values in up to three arrays.
template <class Values>
struct SumValues {
  Values x{}, y{}, grad{};
};
template <int kLane>
SPEEDO_HOST_DEVICE float lane_of(float value) {
  return value;
}
template <int kLane>
SPEEDO_HOST_DEVICE float lane_of(const Floats4& values) {
  if constexpr (kLane == 0) return values.x;
  if constexpr (kLane == 1) return values.y;
  if constexpr (kLane == 2) return values.z;
  return values.w;
}
template <int kLane, class Values>
SPEEDO_HOST_DEVICE SumValues<float> lane_of(const SumValues<Values>& of) {
  return {lane_of<kLane>(of.x), lane_of<kLane>(of.y), lane_of<kLane>(of.grad)};
}

// Columns that a block of threads stands for, of so many: a power of two, 32 at most.
inline int tile_width(std::int64_t columns) {
  int width = 1;
  while (width < 32 && width < columns) width *= 2;
  return width;
}

// The same of the second kernel, which has little work: so narrow that there are 64 blocks, but not
// narrower than the 4 doubles that memory hands out at a time.
inline int pieces_width(std::int64_t channels) {
  constexpr std::int64_t kBlocks = 64;
  int width = 4;
  while (width < 32 && channels > kBlocks * width) width *= 2;
  return width;
}

struct ChannelTiles {
  std::int64_t batch, channels, spatial, block, blocks, tiles;  // tiles: of each block of channels
  std::int64_t pieces, piece_rows;
  int lanes, width;  // a column's neighbours, and a tile's columns

  ChannelTiles(const ArrayShape& shape, Layout layout, bool may_take_fours)
      : batch(shape.batch),
        channels(shape.channels),
        spatial(shape.spatial),
        // Where a channel has one position, the plain order has the channels last.
        block(layout.is_plain() && shape.spatial == 1 ? shape.channels : layout.block),
        blocks((channels + block - 1) / block),
        tiles(0),
        pieces(1),
        piece_rows(rows()),
        lanes(may_take_fours && block % 4 == 0 && channels % 4 == 0 ? 4 : 1),
        width(tile_width(block / lanes)) {
    constexpr std::int64_t kBlocks = 1024, kRowsPerThread = 8;
    constexpr std::int64_t kSumsMax =
        static_cast<std::int64_t>(Queue::kScratchBytes / (2 * sizeof(double)));
    tiles = (block / lanes + width - 1) / width;
    const std::int64_t wanted = (kBlocks + blocks * tiles - 1) / (blocks * tiles);
    const std::int64_t useful = rows() * width / (kSumThreads * kRowsPerThread);
    const std::int64_t most = std::max<std::int64_t>(
        1, std::min({wanted, useful, kSumsMax / std::max<std::int64_t>(1, channels)}));
    piece_rows = (rows() + most - 1) / most;
    if (piece_rows > 0) pieces = (rows() + piece_rows - 1) / piece_rows;
  }

  SPEEDO_HOST_DEVICE std::int64_t rows() const { return batch * spatial; }
  std::int64_t grid_blocks() const { return blocks * tiles * pieces; }
};

// Every so many rows of a tile's column; the row's sample and position are carried along, without a
// division for each.
struct RowWalk {
  std::int64_t at;  // the row's element
  std::int64_t near, far;
  int position, positions, spatial;

  SPEEDO_HOST_DEVICE RowWalk(const ChannelTiles& tiles, std::int64_t row, std::int64_t step,
                             std::int64_t k, std::int64_t within)
      : spatial(static_cast<int>(tiles.spatial)) {
    const std::int64_t sample = tiles.blocks * tiles.spatial * tiles.block;
    const std::int64_t n = row / tiles.spatial, p = row - n * tiles.spatial;
    const std::int64_t samples = step / tiles.spatial, rest = step - samples * tiles.spatial;
    at = n * sample + (k * tiles.spatial + p) * tiles.block + within;
    near = samples * sample + rest * tiles.block;
    far = near + sample - tiles.spatial * tiles.block;
    position = static_cast<int>(p);
    positions = static_cast<int>(rest);
  }
  SPEEDO_HOST_DEVICE void advance() {
    const bool wraps = position >= spatial - positions;
    position += wraps ? positions - spatial : positions;
    at += wraps ? far : near;
  }
};

// Terms: type() is the arrays', are_aligned() whether fours of them can be loaded; channel(c) gives
// what is the same for all of a channel, load(place in the arrays) the SumValues there, of which
// add(one element's, the channel's, first sum, second sum) makes terms.
// Finish: operator()(channel, first sum, second sum) does what they are for.
template <int kLanes, class Terms, class Finish>
struct ChannelSumKernel {
  static constexpr const char* kName = Terms::kName;
  ChannelTiles tiles;
  Terms terms;
  Finish finish;
  double* sums;  // of each piece and channel, the first ones and then the second ones

  SPEEDO_HOST_DEVICE int height() const { return kSumThreads / tiles.width; }
  SPEEDO_HOST_DEVICE int phases() const { return 1 + fold_phases(height()); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const int column = lane.thread % tiles.width, row = lane.thread / tiles.width;
    const std::int64_t piece = lane.block % tiles.pieces, tile = lane.block / tiles.pieces;
    const std::int64_t k = tile / tiles.tiles;
    const std::int64_t within = (tile % tiles.tiles * tiles.width + column) * kLanes;
    const std::int64_t channel = k * tiles.block + within;
    const bool is_used = within < tiles.block && channel < tiles.channels;
    // Of each thread's channels, and beyond them the second sums.
    auto* const first = reinterpret_cast<double*>(lane.shared);
    double* const second = first + kLanes * kSumThreads;
    if (phase == 0) {
      Sums all;
      if (is_used) {
        with_type(terms.type(), [&](auto is) {
          add_rows<decltype(is)::value>({piece, row, k, within}, all);
        });
      }
      for (int j = 0; j < kLanes; ++j) {
        first[kLanes * lane.thread + j] = all.first[j];
        second[kLanes * lane.thread + j] = all.second[j];
      }
    } else {
      for (int j = 0; j < kLanes; ++j) {
        const int at = kLanes * column + j, step = kLanes * tiles.width;
        fold(phase - 1, height(), row, step, first + at, Plus());
        fold(phase - 1, height(), row, step, second + at, Plus());
      }
    }
    if (phase < phases() - 1 || row != 0 || !is_used) return;
    for (int j = 0; j < kLanes; ++j) {
      end(piece, channel + j, first[kLanes * column + j], second[kLanes * column + j]);
    }
  }

 private:
  static constexpr int kAtATime = kLanes == 1 ? 8 : 4;
  struct Sums {
    double first[kLanes] = {}, second[kLanes] = {};
  };
  // Of a thread: its piece, row there, block of channels, and first channel within that.
  struct Rows {
    std::int64_t piece;
    int row;
    std::int64_t k, within;
  };

  SPEEDO_HOST_DEVICE void end(std::int64_t piece, std::int64_t channel, double a, double b) const {
    if (tiles.pieces == 1) {
      finish(channel, a, b);
    } else {
      sums[piece * tiles.channels + channel] = a;
      sums[(tiles.pieces + piece) * tiles.channels + channel] = b;
    }
  }

  // Several elements are under way at a time: memory answers late.
  template <ElementType kType>
  SPEEDO_HOST_DEVICE void add_rows(const Rows& of, Sums& all) const {
    using At = std::conditional_t<kLanes == 1, OneAt<kType>, FourAt<kType>>;
    std::int64_t end = (of.piece + 1) * tiles.piece_rows;
    if (end > tiles.rows()) end = tiles.rows();
    const std::int64_t first = of.piece * tiles.piece_rows + of.row, step = height();
    if (first >= end) return;
    decltype(terms.channel(0)) channels[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      channels[j] = terms.channel(of.k * tiles.block + of.within + j);
    }
    RowWalk walk(tiles, first, step, of.k, of.within);
    std::int64_t left = (end - first + step - 1) / step;
    for (; left >= kAtATime; left -= kAtATime) {
      decltype(terms.load(At{0})) values[kAtATime];
      for (auto& value : values) {
        value = terms.load(At{walk.at});
        walk.advance();
      }
      for (const auto& value : values) add(value, channels, all);
    }
    for (; left > 0; --left, walk.advance()) add(terms.load(At{walk.at}), channels, all);
  }

  template <int kLane = 0, class Values, class Channel>
  SPEEDO_HOST_DEVICE void add(const Values& of, const Channel (&channels)[kLanes],
                              Sums& all) const {
    terms.add(lane_of<kLane>(of), channels[kLane], all.first[kLane], all.second[kLane]);
    if constexpr (kLane + 1 < kLanes) add<kLane + 1>(of, channels, all);
  }
};

template <class Finish>
struct PieceSumKernel {
  static constexpr const char* kName = Finish::kName;
  std::int64_t pieces, channels;
  int width;
  const double* sums;
  Finish finish;

  SPEEDO_HOST_DEVICE int height() const { return kSumThreads / width; }
  SPEEDO_HOST_DEVICE int phases() const { return 1 + fold_phases(height()); }
  SPEEDO_HOST_DEVICE void run(int phase, const Lane& lane) const {
    const int column = lane.thread % width, row = lane.thread / width;
    const std::int64_t channel = lane.block * width + column;
    auto* const first = reinterpret_cast<double*>(lane.shared);
    double* const second = first + kSumThreads;
    if (phase == 0) {
      double a = 0.0, b = 0.0;
      if (channel < channels) add_pieces(row, channel, a, b);
      first[lane.thread] = a;
      second[lane.thread] = b;
    } else {
      fold(phase - 1, height(), row, width, first + column, Plus());
      fold(phase - 1, height(), row, width, second + column, Plus());
    }
    if (phase < phases() - 1 || row != 0 || channel >= channels) return;
    finish(channel, first[column], second[column]);
  }

 private:
  static constexpr int kAtATime = 8;

  SPEEDO_HOST_DEVICE void add_pieces(std::int64_t row, std::int64_t channel, double& a,
                                     double& b) const {
    const std::int64_t step = height();
    for (std::int64_t piece = row; piece < pieces; piece += kAtATime * step) {
      double x[kAtATime], y[kAtATime];
      for (int i = 0; i < kAtATime; ++i) {
        // Beyond the last piece this one again, so that no load waits for a branch.
        const std::int64_t from = piece + i * step < pieces ? piece + i * step : piece;
        x[i] = sums[from * channels + channel];
        y[i] = sums[(pieces + from) * channels + channel];
      }
      for (int i = 0; i < kAtATime && piece + i * step < pieces; ++i) {
        a += x[i];
        b += y[i];
      }
    }
  }
};

// The first kernel, which finishes the sums too where tiles have one piece.
template <int kLanes, class Terms, class Finish>
void sum_pieces(Queue& queue, const ChannelTiles& tiles, const Terms& terms, const Finish& finish,
                double* sums) {
  launch(queue, Grid{tiles.grid_blocks(), kSumThreads, sum_shared_bytes(kLanes)},
         ChannelSumKernel<kLanes, Terms, Finish>{tiles, terms, finish, sums});
}

// Sums up the terms of each channel and finishes them. Uses the scratch.
template <class Terms, class Finish>
void sum_over_channels(Queue& queue, const ChannelView& view, const Terms& terms,
                       const Finish& finish) {
  if (view.shape.channels == 0) return;
  const ChannelTiles tiles(view.shape, view.layout, terms.are_aligned());
  auto* const sums =
      tiles.pieces == 1 ? nullptr : queue.scratch<double>(2 * tiles.pieces * tiles.channels);
  if (tiles.lanes == 4) {
    sum_pieces<4>(queue, tiles, terms, finish, sums);
  } else {
    sum_pieces<1>(queue, tiles, terms, finish, sums);
  }
  if (tiles.pieces == 1) return;
  const int width = pieces_width(tiles.channels);
  launch(queue, Grid{(tiles.channels + width - 1) / width, kSumThreads, sum_shared_bytes(1)},
         PieceSumKernel<Finish>{tiles.pieces, tiles.channels, width, sums, finish});
}

}  // namespace speedo::gpu
