#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <speedo/train/trainer.hpp>

#include "actors/node.hpp"
#include "actors/worker_work.hpp"
#include "train/job_thread.hpp"

namespace speedo {

// The real WorkerWork: a trainer, fed from the store that the master names.
class JobWorker : public WorkerWork {
 public:
  // `store_override`: used instead of what the master says, unless empty.
  JobWorker(std::unique_ptr<Trainer> trainer, OpenStore open_store, std::string store_override);
  ~JobWorker() override;

  void prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) override;
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override;
  void cancel() override;
  std::uint64_t progress() const override { return trainer_->progress(); }

 private:
  Result<Digest> prepare_now(const WelcomeMessage& welcome);
  Result<std::string> read_job(ParameterStore& store) const;

  const OpenStore open_store_;
  const std::string store_override_;
  std::atomic<bool> ending_{false};
  std::unique_ptr<Trainer> trainer_;
  JobThread opening_;  // last: its work uses the others
};

}  // namespace speedo
