#pragma once

// What each schedule has to do, written from its rule in the plainest way, for comparison.

#include <cstdint>

#include <speedo/train/strategy.hpp>

#include "random_events.hpp"

namespace speedo {

Model async_model();
Model sync_model();
Model exact_sync_model(std::uint64_t exact);  // of so many runs a round
Model partial_sync_model(std::uint64_t max_advance);
Model ssp_model(std::uint64_t staleness);
Model weedout_model(std::uint64_t window);
Model grouping_model(const StrategyOptions& options);  // compare with `sorted`

// Of a schedule by its registered name.
Model model_of(const StrategyOptions& options);

}  // namespace speedo
