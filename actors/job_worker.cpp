#include "actors/job_worker.hpp"

#include <future>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {

JobWorker::JobWorker(std::unique_ptr<Trainer> trainer, OpenStore open_store,
                     std::string store_override)
    : open_store_(std::move(open_store)),
      store_override_(std::move(store_override)),
      trainer_(std::move(trainer)) {}

JobWorker::~JobWorker() {
  ending_ = true;
  trainer_->cancel();
}

void JobWorker::prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) {
  opening_.post([this, welcome, done = std::move(done)] { done(prepare_now(welcome)); });
}

// Waits for the trainer, so that answers keep the order of the questions.
Result<Digest> JobWorker::prepare_now(const WelcomeMessage& welcome) {
  const std::string& uri = store_override_.empty() ? welcome.store : store_override_;
  SPEEDO_ASSIGN(std::shared_ptr<ParameterStore> store, open_store_(uri, welcome.job));
  const auto bytes = read_job(*store);
  if (!bytes) {
    return Error{bytes.error().code, fmt::format("cannot read the job '{}' from the store {}: {}",
                                                 welcome.job, uri, bytes.error().message)};
  }
  SPEEDO_ASSIGN(JobSpec job, decode_job(*bytes));
  std::promise<Result<Digest>> prepared;
  trainer_->prepare(WorkerId{welcome.worker}, contribution_key(welcome.epoch, welcome.worker),
                    std::move(job), std::move(store),
                    [&](Result<Digest> model) { prepared.set_value(std::move(model)); });
  return prepared.get_future().get();
}

// A job that is not there may have been lost with the store's data; then the master restores it
// soon.
Result<std::string> JobWorker::read_job(ParameterStore& store) const {
  const Instant deadline = steady_clock().now() + 2 * kJobWatchInterval;
  while (true) {
    auto bytes = store.get_blob(job_key());
    if (bytes || bytes.error().code != ErrorCode::kNotFound) return bytes;
    if (ending_ || steady_clock().now() > deadline) return bytes;
    std::this_thread::sleep_for(kTickInterval);
  }
}

void JobWorker::run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) {
  trainer_->run(order, std::move(done));
}

void JobWorker::cancel() { trainer_->cancel(); }

}  // namespace speedo
