#include "train/job/job_worker.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>
#include <speedo/train/job_end.hpp>

#include "base/answer.hpp"
#include "base/log.hpp"

namespace speedo {
namespace {

// A master that reaches the store has seen by then that its job is gone, and restored it.
constexpr Instant kJobMissingTime = 2 * kJobWatchInterval;

}  // namespace

JobWorker::JobWorker(std::unique_ptr<Trainer> trainer, OpenStore open_store, Options options)
    : open_store_(std::move(open_store)),
      options_(std::move(options)),
      trainer_(std::move(trainer)),
      opening_(*options_.platform, "job") {}

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
  Trainer::Incarnation incarnation{.worker = WorkerId{welcome.worker},
                                   .contribution = contribution_key(welcome.term, welcome.worker),
                                   .job = std::move(job),
                                   .store = store()};
  if (options_.find_door && !welcome.memory.empty()) {
    incarnation.memory = std::make_shared<WorkerMemory>(
        incarnation.store, options_.find_door(welcome.memory), incarnation.contribution);
    incarnation.store = incarnation.memory->store();
  }
  Answer<Result<Digest>> prepared(*options_.platform);
  trainer_->prepare(std::move(incarnation),
                    [&](Result<Digest> model) { prepared.set(std::move(model)); });
  return prepared.wait();
}

// A store that is out of reach is waited for, as the master does; and so is a job that is not
// there: it may have been lost with the store's data, and the master, which restores it soon, may
// be out of the store's reach.
Result<std::string> JobWorker::wait_for_job(const WelcomeMessage& welcome, const Stale& stale) {
  const Clock& clock = options_.platform->clock();
  const Instant start = clock.now();
  Instant next_note = start;
  while (true) {
    auto bytes = read_job(welcome);
    if (bytes) return bytes;
    const bool is_missing = bytes.error().code == ErrorCode::kNotFound;
    if (!is_missing && !is_transient(bytes.error().code)) return bytes;
    const Instant now = clock.now();
    const Instant limit = is_missing ? std::max<Instant>(options_.store_timeout, kJobMissingTime)
                                     : Instant{options_.store_timeout};
    if (stale() || now - start >= limit) return bytes;
    if (now >= next_note && (!is_missing || now - start >= kJobMissingTime)) {
      SPEEDO_WARN("{}; waiting up to {} s (--store-timeout)", bytes.error().message,
                  options_.store_timeout.count());
      next_note = now + kWaitingNoteInterval;
    }
    options_.platform->sleep(kTickInterval);
  }
}

Result<std::string> JobWorker::read_job(const WelcomeMessage& welcome) {
  SPEEDO_ASSIGN(const std::shared_ptr<ParameterStore> store, store_of(welcome));
  auto bytes = store->get_blob(job_key());
  if (bytes) return bytes;
  const bool is_missing = bytes.error().code == ErrorCode::kNotFound;
  return Error{bytes.error().code,
               fmt::format("cannot read the job '{}' from the store: {}{}", welcome.job,
                           bytes.error().message,
                           is_missing ? "; is it the master's store?" : "")};
}

// Connections are kept from one incarnation of the worker to the next.
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

void JobWorker::look_for_end(std::uint64_t term, std::function<void(bool)> done) {
  opening_.post([this, term, done = std::move(done)] {
    const auto used = store();
    const auto is_over = used && !ending_ ? is_job_over(*used, term) : Result<bool>(false);
    done(is_over && *is_over);
  });
}

void JobWorker::run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) {
  trainer_->run(order, std::move(done));
}

void JobWorker::cancel() { trainer_->cancel(); }

}  // namespace speedo
