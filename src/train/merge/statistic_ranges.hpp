#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <speedo/core/parameter_arena.hpp>

namespace speedo {

// Where a model's statistics lie, of which what workers send is no step of a rule.
class StatisticRanges {
 public:
  explicit StatisticRanges(const ParameterLayout& layout) {
    for (const ParameterSlot& slot : layout.slots()) {
      const auto begin = static_cast<std::size_t>(slot.offset);
      if (slot.is_statistic) {
        ranges_.push_back({begin, begin + static_cast<std::size_t>(slot.count())});
      }
    }
  }

  // Calls visit(begin, count, is_statistic) for the parts of `count` elements of which the first is
  // the model's `first`, in order; `begin` counts from there.
  template <class Visit>
  void for_each_part(std::size_t first, std::size_t count, const Visit& visit) const {
    std::size_t next = 0;
    for (const Range& range : ranges_) {
      const std::size_t begin = std::clamp(range.begin, first, first + count) - first;
      const std::size_t end = std::clamp(range.end, first, first + count) - first;
      if (begin == end) continue;
      if (next < begin) visit(next, begin - next, false);
      visit(begin, end - begin, true);
      next = end;
    }
    if (next < count) visit(next, count - next, false);
  }

 private:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  std::vector<Range> ranges_;  // elements, ascending
};

}  // namespace speedo
