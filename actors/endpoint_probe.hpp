#pragma once

#include <atomic>

#include <speedo/base/clock.hpp>

#include "actors/node.hpp"
#include "base/name_lookup.hpp"

namespace speedo {

// What a probe asks of the world.
struct ProbeTools {
  const Clock* clock = &steady_clock();
  LookUp look_up = ask_system;
};

// Resolves the host's name anew, then looks whether something that speaks CAF's protocol listens
// there, within kConnectionTimeout: CAF itself would wait for an answer without end. Gives the
// address in numbers that answered. Blocking; `stop` breaks it off. Errors: kUnavailable, saying
// what was found instead; kInternal.
Result<Address> probe_endpoint(const Address& address, const std::atomic<bool>& stop,
                               const ProbeTools& tools = {});

}  // namespace speedo
