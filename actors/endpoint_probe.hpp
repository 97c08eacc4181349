#pragma once

#include <atomic>

#include "actors/node.hpp"

namespace speedo {

// Looks whether something that speaks CAF's protocol listens at an address, within
// kConnectionTimeout. CAF itself would wait for an answer without end. Blocking; `stop` breaks it
// off. Error: kUnavailable, saying what was found instead.
Result<void> probe_endpoint(const Address& address, const std::atomic<bool>& stop);

}  // namespace speedo
