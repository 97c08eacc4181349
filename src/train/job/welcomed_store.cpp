#include "train/job/welcomed_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>
#include <speedo/train/job_end.hpp>
#include <speedo/train/trainer.hpp>

#include "base/log.hpp"
#include "base/note_interval.hpp"

namespace speedo {
namespace {

// A master that reaches the store has seen by then that its job is gone, and restored it.
constexpr Instant kJobMissingTime = 2 * kJobWatchInterval;

}  // namespace

WelcomedStore::WelcomedStore(OpenStore open_store, Options options)
    : open_store_(std::move(open_store)), options_(std::move(options)) {}

Result<std::string> WelcomedStore::wait_for_job(const WelcomeMessage& welcome,
                                                const Stale& stale) {
  return wait_for_record(job_key(), welcome, stale);
}

Result<std::string> WelcomedStore::wait_for_record(std::string_view key,
                                                   const WelcomeMessage& welcome,
                                                   const Stale& stale) {
  const Clock& clock = options_.platform->clock();
  const Instant start = clock.now();
  NoteInterval notes;
  while (true) {
    auto bytes = read_record(key, welcome);
    if (bytes) return bytes;
    const bool is_missing = bytes.error().code == ErrorCode::kNotFound;
    if (!is_missing && !is_transient(bytes.error().code)) return bytes;
    const Instant now = clock.now();
    const Instant limit = is_missing ? std::max<Instant>(options_.store_timeout, kJobMissingTime)
                                     : Instant{options_.store_timeout};
    if (stale() || now - start >= limit) return bytes;
    if ((!is_missing || now - start >= kJobMissingTime) && notes.is_due(now)) {
      SPEEDO_WARN("{}; waiting up to {} s (--store-timeout)", bytes.error().message,
                  options_.store_timeout.count());
    }
    options_.platform->sleep(kTickInterval);
  }
}

Result<std::string> WelcomedStore::read_record(std::string_view key,
                                               const WelcomeMessage& welcome) {
  SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store, store_of(welcome));
  auto bytes = store->get_blob(key);
  if (bytes) return bytes;
  const bool is_missing = bytes.error().code == ErrorCode::kNotFound;
  return Error{bytes.error().code,
               fmt::format("cannot read the job '{}' from the store: {}{}", welcome.job,
                           bytes.error().message,
                           is_missing ? "; is it the master's store?" : "")};
}

Result<std::shared_ptr<ParameterStore>> WelcomedStore::store_of(const WelcomeMessage& welcome) {
  const StoreAddress address =
      options_.store_override.empty() ? StoreAddress(welcome.store) : options_.store_override;
  const std::string name = address.text() + ' ' + welcome.job;
  {
    const std::lock_guard lock(mutex_);
    if (store_ && store_name_ == name) return store_;
  }
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> opened, open_store_(address, welcome.job));
  const std::lock_guard lock(mutex_);
  store_ = std::move(opened);
  store_name_ = name;
  return store_;
}

std::shared_ptr<ParameterStore> WelcomedStore::store() {
  const std::lock_guard lock(mutex_);
  return store_;
}

bool WelcomedStore::is_over(std::uint64_t term) {
  const auto used = store();
  const auto is_over = used ? is_job_over(*used, term) : Result<bool>(false);
  return is_over && *is_over;
}

}  // namespace speedo
