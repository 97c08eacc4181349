#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

namespace speedo {

// In any order, each as likely as any other.
template <class Value>
void shuffle(std::vector<Value>& values, Random random) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[static_cast<std::size_t>(random.below(left))]);
  }
}

// 0 to count - 1, shuffled.
template <class Index>
void permute(std::vector<Index>& order, std::size_t count, Random random) {
  order.resize(count);
  std::iota(order.begin(), order.end(), Index{0});
  shuffle(order, std::move(random));
}

}  // namespace speedo
