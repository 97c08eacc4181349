#include "train/session/host_quarantine.hpp"

#include <algorithm>

#include <speedo/base/limits.hpp>

namespace speedo {

std::string host_of(std::string_view worker_name) {
  return std::string(worker_name.substr(0, worker_name.find('/')));
}

std::optional<Instant> HostQuarantine::gone(const std::string& host, Instant now) {
  Departures& entry = hosts_[host];
  if (entry.until > now) return std::nullopt;
  entry.gone += 1;
  if (entry.gone < kQuarantineAfter) return std::nullopt;
  entry.wait = entry.wait.count() == 0 ? Instant{kQuarantineFirst}
                                       : std::min<Instant>(2 * entry.wait, kQuarantineMax);
  entry.until = now + entry.wait;
  return entry.wait;
}

Instant HostQuarantine::left(const std::string& host, Instant now) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? Instant{0} : std::max(found->second.until - now, Instant{0});
}

}  // namespace speedo
