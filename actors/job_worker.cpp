#include "actors/job_worker.hpp"

#include <future>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/train/job_end.hpp>

#include "base/log.hpp"

namespace speedo {

JobWorker::JobWorker(std::unique_ptr<Trainer> trainer, OpenStore open_store, Options options)
    : open_store_(std::move(open_store)),
      options_(std::move(options)),
      trainer_(std::move(trainer)) {}

JobWorker::~JobWorker() {
  ending_ = true;
  if (const auto used = store()) used->stop_waiting();
  trainer_->cancel();
}

void JobWorker::prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) {
  const std::uint64_t number = ++preparations_;
  opening_.post([this, welcome, number, done = std::move(done)] {
    done(prepare_now(welcome, [this, number] { return ending_ || preparations_ != number; }));
  });
}

// Waits for the trainer, so that answers keep the order of the questions.
Result<Digest> JobWorker::prepare_now(const WelcomeMessage& welcome, const Stale& stale) {
  SPEEDO_ASSIGN(const std::string bytes, wait_for_job(welcome, stale));
  SPEEDO_ASSIGN(JobSpec job, decode_job(bytes));
  std::promise<Result<Digest>> prepared;
  trainer_->prepare(WorkerId{welcome.worker}, contribution_key(welcome.epoch, welcome.worker),
                    std::move(job), store(),
                    [&](Result<Digest> model) { prepared.set_value(std::move(model)); });
  return prepared.get_future().get();
}

// A store that is out of reach is waited for, as the master does.
Result<std::string> JobWorker::wait_for_job(const WelcomeMessage& welcome, const Stale& stale) {
  const Instant start = steady_clock().now();
  Instant noted = start;
  while (true) {
    auto bytes = read_job(welcome, stale);
    if (bytes || !is_transient(bytes.error().code)) return bytes;
    const Instant now = steady_clock().now();
    if (stale() || now - start >= options_.store_timeout) return bytes;
    if (noted == start || now - noted >= kWaitingNoteInterval) {
      SPEEDO_WARN("{}; waiting up to {} s (--store-timeout)", bytes.error().message,
                  options_.store_timeout.count());
      noted = now;
    }
    std::this_thread::sleep_for(kTickInterval);
  }
}

// A job that is not there may have been lost with the store's data; then the master restores it
// soon.
Result<std::string> JobWorker::read_job(const WelcomeMessage& welcome, const Stale& stale) {
  SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store, store_of(welcome));
  const Instant deadline = steady_clock().now() + 2 * kJobWatchInterval;
  while (true) {
    auto bytes = store->get_blob(job_key());
    if (bytes) return bytes;
    const bool is_missing = bytes.error().code == ErrorCode::kNotFound;
    if (!is_missing || stale() || steady_clock().now() > deadline) {
      return Error{bytes.error().code, fmt::format("cannot read the job '{}' from the store: {}",
                                                   welcome.job, bytes.error().message)};
    }
    std::this_thread::sleep_for(kTickInterval);
  }
}

// Connections are kept from one life of the worker to the next.
Result<std::shared_ptr<ParameterStore>> JobWorker::store_of(const WelcomeMessage& welcome) {
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

std::shared_ptr<ParameterStore> JobWorker::store() {
  const std::lock_guard lock(mutex_);
  return store_;
}

void JobWorker::look_for_end(std::uint64_t epoch, std::function<void(bool)> done) {
  opening_.post([this, epoch, done = std::move(done)] {
    const auto used = store();
    const auto is_over = used && !ending_ ? is_job_over(*used, epoch) : Result<bool>(false);
    done(is_over && *is_over);
  });
}

void JobWorker::run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) {
  trainer_->run(order, std::move(done));
}

void JobWorker::cancel() { trainer_->cancel(); }

}  // namespace speedo
