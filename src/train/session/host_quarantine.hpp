#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/clock.hpp>

namespace speedo {

// The host in a worker's name: what is before the first '/'.
std::string host_of(std::string_view worker_name);

// Hosts whose workers come and go without finishing a run. After kQuarantineAfter of them in a row
// a host is kept out, for kQuarantineFirst, then twice as long after each further one.
class HostQuarantine {
 public:
  // A worker of the host has finished a run: all is well.
  void finished(const std::string& host) { hosts_.erase(host); }
  // A worker of the host went without one. Says for how long the host is kept out, if that begins
  // now; several workers that go at once count as one while it lasts.
  std::optional<Instant> gone(const std::string& host, Instant now);
  // For how long it is still kept out; zero: it is not.
  Instant left(const std::string& host, Instant now) const;

 private:
  struct Departures {
    int gone = 0;
    Instant wait{0}, until{0};
  };
  std::map<std::string, Departures> hosts_;
};

}  // namespace speedo
