#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include <netdb.h>

#include "actors/node.hpp"

namespace speedo {

// What the system knows of a host: its addresses, to be tried in order. Not null.
using HostAddresses = std::shared_ptr<const addrinfo>;
using LookUp = std::function<Result<HostAddresses>(const Address& address)>;

// Asks the system: files, DNS. Blocking, in the worst case for minutes. Error: kUnavailable.
Result<HostAddresses> ask_system(const Address& address);

// Waits for `look_up`, or for `stop`. No look-up can be interrupted: it has a thread of its own,
// which is left to itself if it is not waited for. It then ends with nobody to hear it; so
// `look_up` holds what it uses. Errors: those of `look_up`; kUnavailable if stopped; kInternal if
// it throws.
Result<HostAddresses> look_up_until(const std::atomic<bool>& stop, const LookUp& look_up,
                                    const Address& address);

}  // namespace speedo
