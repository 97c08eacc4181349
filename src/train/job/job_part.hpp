#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include <speedo/train/trainer.hpp>

#include "train/job/job_thread.hpp"
#include "train/job/welcomed_store.hpp"
#include "train/job/worker_work.hpp"
#include "train/parts/part_merger.hpp"
#include "train/parts/part_orders.hpp"

namespace speedo {

// The work of a process that merges a part of a job's weights instead of training: it gets the job
// from the store that the master names, and does what the master orders.
class JobPart : public WorkerWork {
 public:
  // `answer`: takes what is to be said to the master, on the part's thread; not before prepare().
  // `merging`: what of it is this process' own, threads and ahead_bytes_min; the rest is the job's.
  JobPart(const TrainerParts& parts, OpenStore open_store, WelcomedStore::Options options,
          MergerConfig merging = {});
  ~JobPart() override;
  void answer_to(PartSink answer) { answer_ = std::move(answer); }

  void prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) override;
  // It is never told to train, and has nothing alone.
  void save_state(const SaveStateMessage& order, std::function<void(Result<void>)> done) override;
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override;
  void look_for_end(std::uint64_t term, std::function<void(bool)> done) override;
  // Of a master that is gone, nothing is awaited any more.
  void cancel() override;
  void withdraw() override { cancel(); }
  std::uint64_t progress() const override { return 0; }
  // Of the master whose welcome was prepared last.
  void take(PartOrder order);

 private:
  Result<Digest> prepare_now(const WelcomeMessage& welcome, const WelcomedStore::Stale& stale);
  void say(PartAnswer answer);

  const TrainerParts parts_;
  const WelcomedStore::Options options_;
  const MergerConfig merging_;
  WelcomedStore welcomed_;
  PartSink answer_;
  std::atomic<bool> ending_{false};
  std::atomic<std::uint64_t> preparations_{0};
  PartClip clip_;                            // of the next two
  std::shared_ptr<ParameterStore> store_;
  std::unique_ptr<PartMerger> merger_;       // null until a job is prepared
  JobThread opening_;  // last: its work uses the others
};

}  // namespace speedo
