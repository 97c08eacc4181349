#include <rapidcheck.h>

#include <algorithm>

#include "core/plan/memory_packing.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Of random lifetimes: none that are alive together share a unit, and no unit lies outside.
bool is_sound(const std::vector<Lifetime>& lifetimes, const Packing& packing) {
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const std::int64_t begin = packing.offsets[i], end = begin + lifetimes[i].size;
    if (begin < 0 || end > packing.size) return false;
    for (std::size_t j = 0; j < i; ++j) {
      const std::int64_t other = packing.offsets[j];
      const bool is_apart = end <= other || other + lifetimes[j].size <= begin;
      if (overlap(lifetimes[i], lifetimes[j]) && !is_apart) return false;
    }
  }
  return true;
}

rc::Gen<Lifetime> any_lifetime() {
  return rc::gen::map(rc::gen::tuple(rc::gen::inRange<std::int64_t>(1, 100),
                                     rc::gen::inRange(0, 30), rc::gen::inRange(0, 30)),
                      [](const std::tuple<std::int64_t, int, int>& parts) {
                        const auto [size, a, b] = parts;
                        return Lifetime{size, std::min(a, b), std::max(a, b)};
                      });
}

TEST_CASE("arrays that are alive together never overlap", "[memory]") {
  CHECK(rc::check([] {
    const auto lifetimes = *rc::gen::container<std::vector<Lifetime>>(any_lifetime());
    const Packing packing = pack(lifetimes);
    RC_ASSERT(is_sound(lifetimes, packing));
    RC_ASSERT(packing.size >= most_alive(lifetimes));
    RC_ASSERT(packing.offsets == pack(lifetimes).offsets);
    std::int64_t apart = 0;
    for (const Lifetime& lifetime : lifetimes) apart += lifetime.size;
    RC_ASSERT(packing.size <= apart);
  }));
}

TEST_CASE("a chain takes two places in turn", "[memory]") {
  const std::vector<Lifetime> chain{{10, 0, 1}, {8, 1, 2}, {9, 2, 3}, {7, 3, 4}};
  CHECK(most_alive(chain) == 18);
  CHECK(pack(chain).size <= 19);
  CHECK(pack({}).size == 0);
}

TEST_CASE("a training pass needs no more than what is alive at its peak", "[memory]") {
  // Values of ten layers until their backward pass, gradients between two layers.
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < 10; ++i) {
    lifetimes.push_back({100, i, 20 - i});
    lifetimes.push_back({100, 19 - i, 20 - i});
  }
  CHECK(pack(lifetimes).size == most_alive(lifetimes));
}

}  // namespace
}  // namespace speedo
