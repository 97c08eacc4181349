#include "actors/master_lease.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "actors/process_name.hpp"
#include "base/log.hpp"

namespace speedo {
namespace {

// Epochs of different masters differ by their clocks even if the store has forgotten the last one.
std::uint64_t wall_clock_microseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

MasterLease::MasterLease(std::shared_ptr<ParameterStore> store, std::string job)
    : store_(std::move(store)), job_(std::move(job)) {
  static std::atomic<unsigned> leases{0};  // A process may be several masters, one after another.
  claim_.holder = fmt::format("{} {}", process_name(), leases++);
  claim_.epoch_floor = wall_clock_microseconds();
  claim_.time = kLeaseTime;
}

Result<std::unique_ptr<MasterLease>> MasterLease::claim(std::shared_ptr<ParameterStore> store,
                                                        Options options) {
  auto lease = std::unique_ptr<MasterLease>(new MasterLease(std::move(store), options.job));
  lease->claim_.force = options.take_over;
  SPEEDO_ASSIGN(const ClaimAnswer answer, lease->ask());
  if (!answer.granted) SPEEDO_TRY(lease->wait_for_end(answer, options));
  lease->claim_.force = false;
  lease->claim_.dead_holder.clear();
  return lease;
}

// One attempt; remembers what was granted.
Result<ClaimAnswer> MasterLease::ask() {
  SPEEDO_ASSIGN(ClaimAnswer answer, store_->claim_master(claim_));
  if (answer.granted) {
    claim_.epoch = answer.epoch;
    held_ = true;
  }
  return answer;
}

Result<void> MasterLease::wait_for_end(ClaimAnswer held, const Options& options) {
  if (is_known_dead(held.holder)) {
    SPEEDO_INFO("The master {} of the job '{}' is dead; taking over", readable(held.holder), job_);
  } else {
    const double left = std::chrono::duration<double>(held.left).count();
    SPEEDO_INFO("The job '{}' is held by the master {}; its lease ends in {:.1f} s: waiting", job_,
                readable(held.holder), left);
  }
  while (true) {
    if (is_known_dead(held.holder)) {
      claim_.dead_holder = held.holder;
    } else {
      std::this_thread::sleep_for(std::clamp<std::chrono::milliseconds>(
          held.left, std::chrono::milliseconds{10}, kTickInterval));
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
               fmt::format("the master {} {} the job '{}': stop it first, or give this one another "
                           "name with --key-name",
                           readable(holder), why, job_)};
}

MasterLease::~MasterLease() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  if (held_) store_->release_master(claim_).ignore("it ends by itself");
}

void MasterLease::keep(std::function<void(Error)> lost) {
  lost_ = std::move(lost);
  thread_ = std::thread([this] { renew_until_stopped(); });
}

void MasterLease::renew_until_stopped() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLeaseRenewal, [this] { return stopping_; })) {
    lock.unlock();
    if (const auto error = renew()) return lost_(*error);
    lock.lock();
  }
}

// An error only if another master has the job. A store out of reach is others' to report: merges
// meet it as well.
std::optional<Error> MasterLease::renew() {
  const auto answer = store_->claim_master(claim_);
  held_ = answer.has_value();
  if (!held_ && answer.error().code == ErrorCode::kSuperseded) return answer.error();
  return std::nullopt;
}

}  // namespace speedo
