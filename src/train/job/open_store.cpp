#include "train/job/open_store.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "base/log.hpp"
#include "train/session/store_absence.hpp"

namespace speedo {
namespace {

// Until the next attempt is due. A reason: wait no longer.
std::optional<std::string> pause_before_opening(const StoreWait& wait) {
  const Clock& clock = wait.platform->clock();
  const Instant due = clock.now() + kStoreBackoffMax;
  while (true) {
    if (auto reason = wait.poll_stop ? wait.poll_stop() : std::nullopt) return reason;
    if (clock.now() >= due) return std::nullopt;
    wait.platform->sleep(kTickInterval);
  }
}

Result<std::shared_ptr<ParameterStore>> open_when_there(const OpenStore& open,
                                                        const StoreWait& wait,
                                                        const StoreAddress& address,
                                                        const std::string& job) {
  StoreAbsence absence(wait.store_timeout);
  const Clock& clock = wait.platform->clock();
  while (true) {
    auto opened = open(address, job);
    const bool may_come = !opened && is_transient(opened.error().code);
    if (!may_come || wait.store_timeout.count() == 0) {
      if (opened && absence.is_away()) SPEEDO_INFO("the store is there");
      return opened;
    }
    const Instant now = clock.now();
    if (const auto line = absence.lost(opened.error(), now, "at the start")) {
      SPEEDO_WARN("{}", *line);
    }
    if (const auto line = absence.line(now)) SPEEDO_WARN("{}", *line);
    if (const auto given_up = absence.given_up(now)) return *given_up;
    if (const auto reason = pause_before_opening(wait)) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("stopped ({}) while the store was waited for: {}", *reason,
                               opened.error().message)};
    }
  }
}

}  // namespace

OpenStore waiting_opener(OpenStore open, StoreWait wait) {
  return [open = std::move(open), wait = std::move(wait)](const StoreAddress& address,
                                                          const std::string& job) {
    return open_when_there(open, wait, address, job);
  };
}

}  // namespace speedo
