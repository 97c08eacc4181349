#include "store/redis/primary_watch.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include <speedo/base/clock.hpp>
#include <speedo/base/thread_name.hpp>

#include "base/log.hpp"
#include "store/redis/sentinel_look_up.hpp"

namespace speedo {
namespace {

constexpr std::chrono::milliseconds kWatchInterval{1000};
// For a Sentinel to answer: one that does not must not hold up what the others say.
constexpr std::chrono::milliseconds kSentinelPatience{500};
// At the end a failover that is under way is waited for, which takes some seconds.
constexpr std::chrono::milliseconds kFailoverPatience{10000}, kFailoverLook{50};
// By then Sentinels that reach each other have heard of a failover: they say so every two seconds.
constexpr std::chrono::milliseconds kHearsay{10000};

RedisOptions quick(RedisOptions options) {
  options.connect_timeout = std::min(options.connect_timeout, kSentinelPatience);
  options.command_timeout = std::min(options.command_timeout, kSentinelPatience);
  return options;
}

// From the promotion on a Sentinel names the new primary.
bool is_before_promotion(std::string_view failover_state) {
  return !failover_state.empty() && failover_state != "none" && failover_state != "reconf_slaves" &&
         failover_state != "update_config";
}

}  // namespace

PrimaryWatch::PrimaryWatch(const RedisOptions& options, Take take)
    : options_(quick(options)),
      take_(std::move(take)),
      sessions_(options.address.sentinels.size()),
      told_(sessions_.size()) {
  thread_ = std::thread([this] { run(); });
}

PrimaryWatch::~PrimaryWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PrimaryWatch::run() {
  name_thread("sentinels");
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kWatchInterval, [this] { return stopping_; })) {
    lock.unlock();
    {
      const std::lock_guard asking(asking_);
      ask_all();
    }
    lock.lock();
  }
}

void PrimaryWatch::ask_at_end() {
  if (has_ended_) return;
  const std::lock_guard asking(asking_);
  if (has_ended_) return;
  const Instant end = steady_clock().now() + kFailoverPatience;
  while (ask_all() && steady_clock().now() < end) std::this_thread::sleep_for(kFailoverLook);
  has_ended_ = true;
}

// Whether one of them is about to replace the primary.
bool PrimaryWatch::ask_all() {
  std::optional<NamedPrimary> newest;
  bool is_being_replaced = false;
  std::size_t answers = 0;
  const Instant now = steady_clock().now();
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    auto named = ask(i);
    if (!named) {
      sessions_[i].reset();
      continue;
    }
    answers += 1;
    told_[i] = {named->epoch, now};
    is_being_replaced |= named->is_being_replaced;
    if (!newest || named->epoch > newest->epoch) newest = std::move(named);
  }
  if (!newest || newest->epoch < latest_epoch(answers, now)) return is_being_replaced;
  const std::string where = newest->host + ":" + std::to_string(newest->port);
  if (where != last_ && !last_.empty()) {
    SPEEDO_WARN("Sentinels name {} as the primary '{}', and no longer {}: going there", where,
                options_.address.primary, last_);
  }
  last_ = where;
  take_(*newest);
  return is_being_replaced;
}

// Those that know of the latest failover may be silent, and what they said counts until most of the
// others must have heard of it. Sentinels that were made anew count from zero: each replaces what
// it said itself.
std::uint64_t PrimaryWatch::latest_epoch(std::size_t answers, Instant now) const {
  const bool most_answer = 2 * answers > told_.size();
  std::uint64_t latest = 0;
  for (const Told& told : told_) {
    if (!most_answer || now < told.at + kHearsay) latest = std::max(latest, told.epoch);
  }
  return latest;
}

// Nothing: it does not say.
std::optional<NamedPrimary> PrimaryWatch::ask(std::size_t sentinel) {
  std::unique_ptr<RedisSession>& session = sessions_[sentinel];
  if (!session) {
    auto opened = open_sentinel(options_, options_.address.sentinels[sentinel], {});
    if (!opened) return std::nullopt;
    session = std::move(*opened);
  }
  const std::string& primary = options_.address.primary;
  const auto named = primary_named_by(*session, primary);
  if (!named || !*named) return std::nullopt;
  const auto facts = facts_of_primary(*session, primary);
  if (!facts) return std::nullopt;
  return NamedPrimary{.by = options_.address.sentinels[sentinel],
                      .host = (*named)->host,
                      .port = (*named)->port,
                      .epoch = facts->epoch,
                      .is_being_replaced = is_before_promotion(facts->failover_state)};
}

}  // namespace speedo
