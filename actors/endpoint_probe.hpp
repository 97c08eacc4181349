#pragma once

#include <atomic>

#include "actors/node.hpp"

namespace speedo {

// Looks whether something that speaks CAF's protocol listens at an address, within
// kConnectionTimeout. CAF itself would wait for an answer without end. Resolves the host's name
// anew, and gives the address in numbers that answered. Blocking; `stop` breaks it off. Error:
// kUnavailable, saying what was found instead.
Result<Address> probe_endpoint(const Address& address, const std::atomic<bool>& stop);

}  // namespace speedo
