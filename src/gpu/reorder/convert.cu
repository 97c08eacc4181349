// Arrays whose elements lie in one order, of two types or added.

#include "gpu/reorder/convert.hpp"

#include "gpu/launch/launch.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

struct ConvertKernel {
  static constexpr const char* kName = "convert";
  // Of fours: a thread has so many under way before it waits for the first.
  static constexpr int kAtOnce = 2;
  std::int64_t n;
  ArrayFrom source;
  ArrayTo target;
  bool adds, by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    with_type(source.type, [&](auto from) {
      with_type(target.type, [&](auto to) {
        if (adds) {
          run_of<decltype(from)::value, decltype(to)::value, true>(lane);
        } else {
          run_of<decltype(from)::value, decltype(to)::value, false>(lane);
        }
      });
    });
  }

 private:
  template <ElementType kFrom, ElementType kTo, bool kAdds>
  SPEEDO_HOST_DEVICE void run_of(const Lane& lane) const {
    const std::int64_t fours = by_fours ? n / 4 : 0;
    pass<kAdds>(
        lane, 0, fours, [](std::int64_t i) { return FourAt<kFrom>{4 * i}; },
        [](std::int64_t i) { return FourAt<kTo>{4 * i}; });
    pass<kAdds>(
        lane, 4 * fours, n, [](std::int64_t i) { return OneAt<kFrom>{i}; },
        [](std::int64_t i) { return OneAt<kTo>{i}; });
  }

  // The places from(i) to the places to(i), of a range divided over all lanes.
  template <bool kAdds, class From, class To>
  SPEEDO_HOST_DEVICE void pass(const Lane& lane, std::int64_t begin, std::int64_t end,
                               const From& from, const To& to) const {
    const std::int64_t step = std::int64_t{kAtOnce} * lane.threads;
    for (std::int64_t first = begin + lane.block * step + lane.thread; first < end;
         first += lane.blocks * step) {
      decltype(from(0).load(source)) values[kAtOnce] = {}, sums[kAtOnce] = {};
      for (int k = 0; k < kAtOnce; ++k) {
        const std::int64_t i = first + k * lane.threads;
        if (i >= end) continue;
        values[k] = from(i).load(source);
        if constexpr (kAdds) sums[k] = to(i).load(ArrayFrom(target));
      }
      for (int k = 0; k < kAtOnce; ++k) {
        const std::int64_t i = first + k * lane.threads;
        if (i >= end) continue;
        if constexpr (kAdds) {
          to(i).store(target, each([](float a, float b) { return a + b; }, sums[k], values[k]));
        } else {
          to(i).store(target, values[k]);
        }
      }
    }
  }
};

}  // namespace

void convert(Queue& queue, std::int64_t n, ArrayFrom source, ArrayTo target, bool adds) {
  const bool by_fours = are_aligned(source, ArrayFrom(target));
  launch(queue, grid_for(queue, n, (by_fours ? 4 : 1) * ConvertKernel::kAtOnce),
         ConvertKernel{n, source, target, adds, by_fours});
}

}  // namespace speedo::gpu
