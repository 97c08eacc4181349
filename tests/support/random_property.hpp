#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <string>
#include <unordered_map>

#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include "support/long_runs.hpp"
#include "support/random_seed.hpp"

namespace speedo::test {

// How much rapidcheck draws for one seed.
struct PropertySize {
  int sequences = 100;
  int longest = 100;
};

// Whether `property` holds for what rapidcheck draws from each of the seeds that are kept and from
// the fresh one of this run. What is kept was tried before: but for long runs, a quarter of it.
// rapidcheck prints what it found, made as short as it can.
template <class Property>
bool holds_for_seeds(std::initializer_list<std::uint64_t> kept, const PropertySize& size,
                     const Property& property) {
  // Without these two rapidcheck would read, and print, a configuration that is not used.
  rc::detail::TestListenerAdapter listener;
  const std::unordered_map<std::string, rc::detail::Reproduce> none;
  bool all = true;
  for (const std::uint64_t seed : seeds(kept)) {
    rc::detail::TestParams params;
    params.seed = seed;
    const bool is_kept = std::find(kept.begin(), kept.end(), seed) != kept.end();
    params.maxSuccess = is_kept && !is_long() ? size.sequences / 4 : size.sequences;
    params.maxSize = size.longest;
    const rc::detail::TestResult result =
        rc::detail::checkTestable(property, rc::detail::TestMetadata(), params, listener, none);
    if (result.template is<rc::detail::SuccessResult>()) continue;
    rc::detail::printResultMessage(result, std::cerr);
    all = false;
  }
  return all;
}

}  // namespace speedo::test
