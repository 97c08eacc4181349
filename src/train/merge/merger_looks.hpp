#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <speedo/base/clock.hpp>

namespace speedo {

// How often an idle merger looks after the weights in the store.
inline constexpr std::chrono::seconds kMergerLookInterval{1};

// Chunks of a contribution that are looked for at once: two buckets of a large net.
inline constexpr std::size_t kChunksLookedFor = 32;

// How long an idle merger pauses between looks for contributions that it has expected for this
// time: after a part of it, so that looking costs little and comes too late by little.
inline Instant ahead_pause(Instant expected_for) {
  constexpr int kLooks = 32;
  constexpr std::chrono::milliseconds kPauseMin{1}, kPauseMax{50};
  return std::clamp<Instant>(expected_for / kLooks, kPauseMin, kPauseMax);
}

}  // namespace speedo
