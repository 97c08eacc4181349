// The store: one that is out of reach is waited for, and records that nobody will read are erased.

#include <algorithm>

#include "train/master_session_impl.hpp"

namespace speedo {

// The weights are in memory: training goes on once the store is back.
void MasterSession::Impl::handle(const master_event::StoreLost& event) {
  const Error& error = event.error;
  if (error.code == ErrorCode::kSuperseded) return fail(error);
  if (!open()) return;
  if (!is_transient(error.code) || config_.store_timeout.count() == 0) return fail(error);
  const auto line = store_absence_.lost(error, now_, fmt::format("at iteration {}", iteration()));
  if (line) note(true, "{}", *line);
}

void MasterSession::Impl::handle(const master_event::StoreBack& /*event*/) {
  const auto away = store_absence_.back(now_);
  if (!away) return;
  note(false, "the store is back after {} s; training goes on at iteration {}", seconds(*away),
       iteration());
}

void MasterSession::Impl::watch_store() {
  if (!open()) return;
  if (const auto error = store_absence_.given_up(now_)) return fail(*error);
  if (const auto line = store_absence_.line(now_)) note(true, "{}", *line);
}

bool MasterSession::Impl::is_wanted(WorkerId worker) const {
  const auto takes_part = [worker](const MergeOrder& order) {
    return std::ranges::any_of(order.reports,
                               [worker](const Report& each) { return each.worker == worker; });
  };
  if (reports_.contains(worker)) return true;
  if (in_flight_ && takes_part(in_flight_->order)) return true;
  return std::ranges::any_of(queue_, [&](const auto& each) {
    const auto* merge = std::get_if<MergeOrder>(&each);
    return merge != nullptr && takes_part(*merge);
  });
}

void MasterSession::Impl::erase_records_of_gone() {
  if (phase_ == Phase::kFinished) return;  // superseded: they are another master's to erase
  std::erase_if(gone_, [this](WorkerId worker) {
    if (is_wanted(worker)) return false;
    out_.emplace_back(master_command::EraseWorker{worker});
    return true;
  });
}

}  // namespace speedo
