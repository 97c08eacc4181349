#pragma once

#include <functional>
#include <memory>
#include <string>

#include <netdb.h>

#include <speedo/base/result.hpp>

namespace speedo {

// What the system knows of a host: its addresses, to be tried in order. Not null.
using HostAddresses = std::shared_ptr<const addrinfo>;
using LookUp = std::function<Result<HostAddresses>(const std::string& host, int port)>;

// Of an address in numbers; nobody is asked. Error: kUnavailable, also for a name.
Result<HostAddresses> read_numbers(const std::string& host, int port);

// Asks the system: files, DNS. Blocking, in the worst case for minutes. Error: kUnavailable.
Result<HostAddresses> ask_system(const std::string& host, int port);

// Waits for `look_up`, or until `stop` says so. An address in numbers needs neither. No look-up can
// be interrupted: it has a thread of its own, which is left to itself if it is not waited for. It
// then ends with nobody to hear it; so `look_up` holds what it uses. Errors: those of `look_up`;
// kUnavailable if stopped. What it throws is thrown here.
Result<HostAddresses> look_up_until(const std::function<bool()>& stop, const LookUp& look_up,
                                    const std::string& host, int port);

// In numbers; empty if there is no such form.
std::string numeric_host(const addrinfo& address);

}  // namespace speedo
