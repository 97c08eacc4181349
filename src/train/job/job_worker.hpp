#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include <speedo/train/trainer.hpp>

#include "store/shared/memory_exchange.hpp"
#include "train/job/job_thread.hpp"
#include "train/job/open_store.hpp"
#include "train/job/welcomed_store.hpp"
#include "train/job/worker_work.hpp"

namespace speedo {

// The real WorkerWork: a trainer, fed from the store that the master names.
class JobWorker : public WorkerWork {
 public:
  struct Options {
    StoreAddress store_override;  // used instead of what the master says, unless empty
    std::chrono::seconds store_timeout{0};  // prepare() waits so long for store and job
    Platform* platform = &real_platform();
    FindDoor find_door = nullptr;  // to the memory of a master of this machine; null: not wanted
  };
  JobWorker(std::unique_ptr<Trainer> trainer, OpenStore open_store, Options options);
  // Ends what is under way; a store that does not answer is waited for only for a moment.
  ~JobWorker() override;

  void prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) override;
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override;
  void save_state(const SaveStateMessage& order, std::function<void(Result<void>)> done) override;
  void look_for_end(std::uint64_t term, std::function<void(bool)> done) override;
  void cancel() override;
  void withdraw() override;
  std::uint64_t progress() const override { return trainer_->progress(); }

 private:
  Result<Digest> prepare_now(const WelcomeMessage& welcome, const WelcomedStore::Stale& stale);

  const Options options_;
  WelcomedStore welcomed_;
  std::atomic<bool> ending_{false};
  std::atomic<std::uint64_t> preparations_{0};
  std::unique_ptr<Trainer> trainer_;
  JobThread opening_;  // last: its work uses the others
};

}  // namespace speedo
