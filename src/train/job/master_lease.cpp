#include "train/job/master_lease.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/process_name.hpp"

namespace speedo {
namespace {

std::shared_ptr<Pause> pause_of(const MasterLease::Options& options) {
  return options.pause ? options.pause : std::make_shared<RealPause>(*options.platform);
}

}  // namespace

MasterLease::MasterLease(std::shared_ptr<MasterStore> store, const Options& options)
    : store_(std::move(store)),
      platform_(*options.platform),
      job_(options.job),
      remedy_(options.remedy),
      pause_(pause_of(options)) {
  // A process may be several masters, one after another.
  claim_.holder = fmt::format("{} {:x}", platform_.process_name(), platform_.random_bits());
  claim_.term_floor = options.term_floor;
  claim_.time = kLeaseTime;
}

Result<std::unique_ptr<MasterLease>> MasterLease::claim(std::shared_ptr<MasterStore> store,
                                                        Options options) {
  auto lease = std::unique_ptr<MasterLease>(new MasterLease(std::move(store), options));
  lease->claim_.force = options.take_over;
  SPEEDO_ASSIGN(const ClaimAnswer answer, lease->ask());
  lease->was_held_ = options.take_over || !answer.granted;
  if (!answer.granted) SPEEDO_TRY(lease->wait_for_end(answer, options));
  lease->claim_.force = false;
  lease->claim_.dead_holder.clear();
  return lease;
}

// One attempt; remembers what was granted. Terms of different masters differ by their clocks,
// though the store may have forgotten the last one. So do the numbers of their runs, which begin at
// the term: it is that of now, however long the claim has waited, and kTermStride above the last
// one where this clock is behind.
Result<ClaimAnswer> MasterLease::ask() {
  claim_.term_floor = std::max(platform_.wall_clock_microseconds(), claim_.term_floor);
  SPEEDO_ASSIGN(ClaimAnswer answer, store_->claim_master(claim_));
  if (answer.granted) {
    claim_.term = answer.term;
    held_ = true;
  }
  return answer;
}

Result<void> MasterLease::wait_for_end(ClaimAnswer held, const Options& options) {
  if (platform_.is_known_dead(held.holder)) {
    SPEEDO_INFO("The master {} of the job '{}' is dead; taking over", readable(held.holder), job_);
  } else {
    const double left = std::chrono::duration<double>(held.left).count();
    SPEEDO_INFO("The job '{}' is held by the master {}; its lease ends in {:.1f} s: waiting", job_,
                readable(held.holder), left);
  }
  while (true) {
    if (platform_.is_known_dead(held.holder)) {
      claim_.dead_holder = held.holder;
    } else {
      pause_->wait(std::clamp<std::chrono::milliseconds>(held.left, std::chrono::milliseconds{10},
                                                         kTickInterval));
    }
    if (const auto reason = options.poll_stop ? options.poll_stop() : std::nullopt) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("stopped ({}) while another master held the job '{}'", *reason,
                               job_)};
    }
    SPEEDO_ASSIGN(const ClaimAnswer now, ask());
    if (now.granted) return {};
    if (now.holder != held.holder) return held_by(now.holder, "has taken");
    if (now.left > held.left) return held_by(now.holder, "lives and holds");
    held = now;
  }
}

Error MasterLease::held_by(const std::string& holder, const char* why) const {
  return Error{ErrorCode::kSuperseded,
               fmt::format("the master {} {} the job '{}': {}", readable(holder), why, job_,
                           remedy_)};
}

MasterLease::~MasterLease() {
  pause_->end();
  thread_.reset();
  if (held_) store_->release_master(claim_).ignore("it ends by itself");
}

// However renewing ends, but for the lease's own end, the cause is told.
void MasterLease::keep(std::function<void(Error)> lost) {
  thread_ = platform_.start_thread("lease", [this, lost = std::move(lost)] {
    const auto kept = guarded(fmt::format("the lease of the job '{}' is renewed no longer", job_),
                              [this] { return renew_until_ended(); });
    if (!kept) lost(kept.error());
  });
}

Result<void> MasterLease::renew_until_ended() {
  while (pause_->wait(kLeaseRenewal)) SPEEDO_TRY(renew());
  return {};
}

// An error only if another master has the job. A store out of reach is others' to report: merges
// meet it as well.
Result<void> MasterLease::renew() {
  const auto answer = store_->claim_master(claim_);
  held_ = answer.has_value();
  if (!held_ && answer.error().code == ErrorCode::kSuperseded) return answer.error();
  return {};
}

}  // namespace speedo
