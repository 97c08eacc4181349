#include "train/job/job_worker.hpp"

#include <utility>


#include "base/answer.hpp"

namespace speedo {
JobWorker::JobWorker(std::unique_ptr<Trainer> trainer, OpenStore open_store, Options options)
    : options_(std::move(options)),
      welcomed_(std::move(open_store), {.store_override = options_.store_override,
                                        .store_timeout = options_.store_timeout,
                                        .platform = options_.platform}),
      trainer_(std::move(trainer)),
      opening_(*options_.platform, "job") {}

JobWorker::~JobWorker() {
  ending_ = true;
  if (const auto used = welcomed_.store()) used->stop_waiting();
  trainer_->cancel();
}

void JobWorker::prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) {
  const std::uint64_t number = ++preparations_;
  opening_.post([this, welcome, number, done = std::move(done)] {
    done(prepare_now(welcome, [this, number] { return ending_ || preparations_ != number; }));
  });
}

// Waits for the trainer, so that answers keep the order of the questions.
Result<Digest> JobWorker::prepare_now(const WelcomeMessage& welcome,
                                      const WelcomedStore::Stale& stale) {
  SPEEDO_ASSIGN(const std::string bytes, welcomed_.wait_for_job(welcome, stale));
  SPEEDO_ASSIGN(JobSpec job, decode_job(bytes));
  Trainer::Incarnation incarnation{.worker = WorkerId{welcome.worker},
                                   .contribution = contribution_key(welcome.term, welcome.worker),
                                   .job = std::move(job),
                                   .store = welcomed_.store(),
                                   .term = welcome.term};
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

void JobWorker::look_for_end(std::uint64_t term, std::function<void(bool)> done) {
  opening_.post([this, term, done = std::move(done)] {
    done(!ending_ && welcomed_.is_over(term));
  });
}

void JobWorker::run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) {
  trainer_->run(order, std::move(done));
}

void JobWorker::save_state(const SaveStateMessage& order, std::function<void(Result<void>)> done) {
  trainer_->save_state(order, std::move(done));
}

void JobWorker::cancel() { trainer_->cancel(); }

void JobWorker::withdraw() { trainer_->withdraw(); }

}  // namespace speedo
