// Forward, a thread makes an output of several channels from its window, or two of them. Backward,
// it makes two by two source elements from all windows that have one of them, row by row, each
// loaded once. A place beyond the image is loaded from its edge, and counts for nothing: so no load
// waits for a branch.

#include "gpu/pooling/pooling_fixed.hpp"

#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>

#include "gpu/launch/launch.hpp"
#include "gpu/pooling/pooling_lanes.hpp"
#include "gpu/pooling/pooling_windows.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

constexpr int kPatch = 2;  // source elements of a thread, along either axis
constexpr std::size_t kLaneBytes = 16;

// What each thread makes, counted in ints: channels of one place in a plane, of all images.
struct PlacesInPlanes {
  int count, lanes, columns, rows;
  Divisor by_lanes, by_columns, by_rows;

  PlacesInPlanes(std::int64_t planes, std::int64_t all_rows, std::int64_t all_columns,
                 std::int64_t all_lanes)
      : count(static_cast<int>(planes * all_rows * all_columns * all_lanes)),
        lanes(static_cast<int>(all_lanes)),
        columns(static_cast<int>(all_columns)),
        rows(static_cast<int>(all_rows)),
        by_lanes(all_lanes),
        by_columns(all_columns),
        by_rows(all_rows) {}

  struct At {
    int plane, row, column, lane;
  };
  SPEEDO_HOST_DEVICE At at(int i) const {
    const int place = by_lanes.quotient(i), line = by_columns.quotient(place);
    const int plane = by_rows.quotient(line);
    return {plane, line - plane * rows, place - line * columns, i - place * lanes};
  }
};

SPEEDO_HOST_DEVICE int clamped(int i, int count) {
  const int above = i < 0 ? 0 : i;
  return above < count ? above : count - 1;
}
SPEEDO_HOST_DEVICE bool is_within(int i, int count) {
  return static_cast<unsigned>(i) < static_cast<unsigned>(count);
}

// kCount neighbours along an axis, some of which may lie beyond it.
template <int kCount>
struct Neighbours {
  int at[kCount];  // times a step
  bool is_within[kCount];

  SPEEDO_HOST_DEVICE Neighbours(int first, int size, int step) {
    unrolled<kCount>([&](int k) {
      at[k] = clamped(first + k, size) * step;
      is_within[k] = gpu::is_within(first + k, size);
    });
  }
};

// Windows of steps of 1 have most of their elements in common.
constexpr int outputs_of_thread(int step) { return step == 1 ? 2 : 1; }

template <int kSize, int kStep, ElementType kType, bool kKeepsWinners>
struct FixedMaximumKernel {
  using Values = LaneValues<kType>;
  static constexpr int kLanes = Values::kLanes;
  static constexpr const char* kName = "pooling_maximum_fixed";
  PlacesInPlanes places;  // of groups of outputs
  int src_h, src_w, dst_h, pad_h, pad_w;
  const void* src;
  void* dst;
  std::uint8_t* winners;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < places.count; i += lane.stride()) {
      make(places.at(static_cast<int>(i)));
    }
  }

 private:
  static constexpr int kOutputs = outputs_of_thread(kStep);  // one below the other
  static constexpr int kRows = kSize + (kOutputs - 1) * kStep;
  // What a window without any number gives: -FLT_MAX, or what it is rounded to, below which no
  // number lies either.
  static constexpr float kNone = kType == ElementType::kFloat32 ? -FLT_MAX : -HUGE_VALF;
  struct Sources {
    Values of[kRows][kSize];
  };

  SPEEDO_HOST_DEVICE void make(const PlacesInPlanes::At& at) const {
    const int row = at.row * kOutputs, line = src_w * places.lanes;
    const int plane = at.plane * src_h * line + at.lane;
    const Neighbours<kRows> rows(row * kStep - pad_h, src_h, line);
    const Neighbours<kSize> columns(at.column * kStep - pad_w, src_w, places.lanes);
    Sources sources;
    unrolled<kRows>([&](int h) {
      unrolled<kSize>([&](int w) {
        const bool counts = rows.is_within[h] && columns.is_within[w];
        Values& taken = sources.of[h][w];
        taken = load_words<Values>(src, plane + rows.at[h] + columns.at[w]);
        for (std::uint32_t& word : taken.words) word = counts ? word : Values::kLowest;
      });
    });
    const int first = ((at.plane * dst_h + row) * places.columns + at.column) * places.lanes;
    unrolled<kOutputs>([&](int k) {
      if (row + k >= dst_h) return;
      store(sources, k * kStep, first + k * places.columns * places.lanes + at.lane);
    });
  }

  // The output of the window that begins with such a row.
  SPEEDO_HOST_DEVICE void store(const Sources& sources, int row, int place) const {
    float best[kLanes];
    int winner[kLanes];
    unrolled<kLanes>([&](int j) { best[j] = kNone, winner[j] = -1; });
    unrolled<kSize * kSize>([&](int tap) {
      unrolled<kLanes>([&](int j) {
        const float value = sources.of[row + tap / kSize][tap % kSize].get(j);
        const bool is_more = value > best[j];
        best[j] = is_more ? value : best[j];
        winner[j] = is_more ? tap : winner[j];
      });
    });
    store_words(dst, place, Values::of_exact(best));
    if constexpr (kKeepsWinners) store_words(winners, place, LaneBytes<kLanes>::of(winner));
  }
};

// Along one axis, the windows that have one of a patch's elements, in their order; and which tap of
// each an element is.
template <int kSize, int kStep>
struct PatchWindows {
  static constexpr int kBehind = (kSize - 1) / kStep;
  static constexpr int kCount = kBehind + 1 + (kPatch - 1) / kStep;

  static constexpr int tap(int element, int window) { return element + (kBehind - window) * kStep; }
  static constexpr bool have(int element, int window) {
    return tap(element, window) >= 0 && tap(element, window) < kSize;
  }
};

// The patches along an axis: each begins where a window does.
struct PatchAxis {
  int src, dst, count;
  int shift;   // by how much the first one begins before the image
  int window;  // the first of the first patch

  PatchAxis(const PoolingAxis& axis, int size, int step)
      : src(axis.src),
        dst(axis.dst),
        count(0),
        shift(axis.pad % step),
        window((axis.pad - shift) / step - (size - 1) / step) {
    count = (src + shift + kPatch - 1) / kPatch;
  }
};

template <int kSize, int kStep, ElementType kType, bool kIsMaximum>
struct FixedGradientKernel {
  using Values = LaneValues<kType>;
  using Windows = PatchWindows<kSize, kStep>;
  static constexpr int kLanes = Values::kLanes;
  static constexpr const char* kName =
      kIsMaximum ? "pooling_backward_fixed" : "pooling_average_backward_fixed";
  PlacesInPlanes places;  // of patches
  PatchAxis y, x;
  PoolingWindows windows;
  const std::uint8_t* winners;
  const void* dst_grad;
  void* src_grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < places.count; i += lane.stride()) {
      make(places.at(static_cast<int>(i)));
    }
  }

 private:
  using Lines = Neighbours<Windows::kCount>;
  struct Patch {
    float of[kPatch][kPatch][kLanes];
  };

  SPEEDO_HOST_DEVICE void make(const PlacesInPlanes::At& at) const {
    const int first_row = at.row * (kPatch / kStep) + y.window;
    const int first_column = at.column * (kPatch / kStep) + x.window;
    const int line = x.dst * places.lanes, plane = at.plane * y.dst * line + at.lane;
    const Lines rows(first_row, y.dst, line), columns(first_column, x.dst, places.lanes);
    Patch sum = {};
    unrolled<Windows::kCount>([&](int row) {
      Values grads[Windows::kCount];
      [[maybe_unused]] LaneBytes<kLanes> taps[Windows::kCount];
      unrolled<Windows::kCount>([&](int column) {
        const int place = plane + rows.at[row] + columns.at[column];
        grads[column] = load_words<Values>(dst_grad, place);
        if constexpr (kIsMaximum) taps[column] = load_words<LaneBytes<kLanes>>(winners, place);
      });
      unrolled<Windows::kCount>([&](int column) {
        const bool counts = rows.is_within[row] && columns.is_within[column];
        if constexpr (kIsMaximum) {
          for (std::uint32_t& word : taps[column].words) word = counts ? word : ~0U;
          add_maximum(row, column, taps[column], grads[column], sum);
        } else {
          const float size = window_size(first_row + row, first_column + column);
          float share[kLanes];
          unrolled<kLanes>([&](int j) { share[j] = counts ? grads[column].get(j) / size : 0.0F; });
          add_average(row, column, share, sum);
        }
      });
    });
    store(at, sum);
  }

  // What a window gives to the elements that it has, each at a tap of its own.
  SPEEDO_HOST_DEVICE static void add_maximum(int row, int column, const LaneBytes<kLanes>& taps,
                                             const Values& grads, Patch& sum) {
    for_each_element(row, column, [&](int h, int w) {
      const int tap = Windows::tap(h, row) * kSize + Windows::tap(w, column);
      unrolled<kLanes>([&](int j) {
        if (taps.is(j, tap)) sum.of[h][w][j] += grads.get(j);
      });
    });
  }
  SPEEDO_HOST_DEVICE static void add_average(int row, int column, const float (&share)[kLanes],
                                             Patch& sum) {
    for_each_element(row, column, [&](int h, int w) {
      unrolled<kLanes>([&](int j) { sum.of[h][w][j] += share[j]; });
    });
  }
  template <class Body>
  SPEEDO_HOST_DEVICE static void for_each_element(int row, int column, const Body& body) {
    unrolled<kPatch>([&](int h) {
      unrolled<kPatch>([&](int w) {
        if (Windows::have(h, row) && Windows::have(w, column)) body(h, w);
      });
    });
  }

  SPEEDO_HOST_DEVICE float window_size(int row, int column) const {
    return static_cast<float>(windows.y.reach(row).length * windows.x.reach(column).length);
  }

  // An element of one window has at most one gradient, as it is.
  SPEEDO_HOST_DEVICE static Values stored(const float (&sum)[kLanes]) {
    return kIsMaximum && kSize <= kStep ? Values::of_exact(sum) : Values::of_sums(sum);
  }
  SPEEDO_HOST_DEVICE void store(const PlacesInPlanes::At& at, const Patch& sum) const {
    const int row = at.row * kPatch - y.shift, column = at.column * kPatch - x.shift;
    const int first = ((at.plane * y.src + row) * x.src + column) * places.lanes + at.lane;
    unrolled<kPatch>([&](int h) {
      unrolled<kPatch>([&](int w) {
        if (!is_within(row + h, y.src) || !is_within(column + w, x.src)) return;
        store_words(src_grad, first + (h * x.src + w) * places.lanes, stored(sum.of[h][w]));
      });
    });
  }
};

// Whether an axis' windows are such; a step after the only one leads nowhere.
bool is_of(const PoolingAxis& axis, int size, int step) {
  return axis.kernel == size && (axis.dst == 1 || axis.stride == step);
}

// Of an array whose neighbours in memory are channels.
struct Planes {
  std::int64_t count, lanes;

  explicit Planes(const PoolingShape& shape)
      : count(shape.batch * (shape.channels / shape.layout.block)),
        lanes(shape.layout.block * bytes_of_element(shape.layout.type) / 16) {}
};

// Whether there are 16 bytes of channels, and places, with those of patches beyond the image, are
// ints.
bool has_whole_lanes(const PoolingShape& shape) {
  if (shape.layout.block * bytes_of_element(shape.layout.type) % 16 != 0) return false;
  if (shape.channels % shape.layout.block != 0) return false;
  const Planes planes(shape);
  const std::int64_t src = (shape.src_h + kPatch) * (shape.src_w + kPatch);
  const std::int64_t dst = shape.dst_h * shape.dst_w;
  return planes.count * planes.lanes * std::max(src, dst) <= INT_MAX;
}

// Calls queue_it<type, is_so>().
template <class Body>
void with_type_and(ElementType type, bool is_so, const Body& queue_it) {
  with_type(type, [&](auto is) {
    constexpr ElementType kType = decltype(is)::value;
    if (is_so) {
      queue_it.template operator()<kType, true>();
    } else {
      queue_it.template operator()<kType, false>();
    }
  });
}

// Calls queue_it<size, step>() of the windows' size and step; false: they are others.
template <class Body>
bool with_fixed(const PoolingWindows& windows, const Body& queue_it) {
  const auto are = [&](int size, int step) {
    return is_of(windows.y, size, step) && is_of(windows.x, size, step);
  };
  const bool is_two = are(2, 2), is_three_by_two = are(3, 2), is_three = are(3, 1);
  if (is_two) queue_it.template operator()<2, 2>();
  if (is_three_by_two) queue_it.template operator()<3, 2>();
  if (is_three && !is_three_by_two) queue_it.template operator()<3, 1>();
  return is_two || is_three_by_two || is_three;
}

}  // namespace

bool queue_fixed_maxima(Queue& queue, const PoolingShape& shape, const float* src, float* dst,
                        std::uint8_t* winners) {
  if (!has_whole_lanes(shape)) return false;
  if (!is_aligned(src, kLaneBytes) || !is_aligned(dst, kLaneBytes)) return false;
  const PoolingWindows windows(shape);
  const Planes planes(shape);
  return with_fixed(windows, [&]<int kSize, int kStep>() {
    constexpr int kOutputs = outputs_of_thread(kStep);
    const PlacesInPlanes places(planes.count, (shape.dst_h + kOutputs - 1) / kOutputs, shape.dst_w,
                                planes.lanes);
    const auto queue_it = [&]<ElementType kType, bool kKeepsWinners>() {
      launch(queue, grid_for(queue, places.count),
             FixedMaximumKernel<kSize, kStep, kType, kKeepsWinners>{
                 places, windows.y.src, windows.x.src, windows.y.dst, windows.y.pad, windows.x.pad,
                 src, dst, winners});
    };
    with_type_and(shape.layout.type, winners != nullptr, queue_it);
  });
}

bool queue_fixed_backward(Queue& queue, const PoolingShape& shape, const std::uint8_t* winners,
                          const float* dst_grad, float* src_grad) {
  if (!has_whole_lanes(shape)) return false;
  if (!is_aligned(dst_grad, kLaneBytes) || !is_aligned(src_grad, kLaneBytes)) return false;
  const PoolingWindows windows(shape);
  const Planes planes(shape);
  return with_fixed(windows, [&]<int kSize, int kStep>() {
    const PatchAxis y(windows.y, kSize, kStep), x(windows.x, kSize, kStep);
    const PlacesInPlanes places(planes.count, y.count, x.count, planes.lanes);
    const auto queue_it = [&]<ElementType kType, bool kIsMaximum>() {
      launch(queue, grid_for(queue, places.count),
             FixedGradientKernel<kSize, kStep, kType, kIsMaximum>{places, y, x, windows, winners,
                                                                  dst_grad, src_grad});
    };
    with_type_and(shape.layout.type, shape.method == PoolingShape::Method::kMax, queue_it);
  });
}

}  // namespace speedo::gpu
