#include "actors/job_master.hpp"

#include <future>
#include <utility>

#include <speedo/base/limits.hpp>

#include "base/log.hpp"

namespace speedo {

JobMaster::JobMaster(std::unique_ptr<JobNets> nets, std::shared_ptr<ParameterStore> store,
                     JobNets::WriteSnapshot write_snapshot, std::string job_record)
    : nets_(std::move(nets)),
      store_(std::move(store)),
      write_snapshot_(std::move(write_snapshot)),
      job_record_(std::move(job_record)) {}

Result<std::unique_ptr<JobMaster>> JobMaster::create(const MasterOptions& options,
                                                     const TrainerParts& parts,
                                                     std::unique_ptr<JobNets> nets,
                                                     std::shared_ptr<ParameterStore> store,
                                                     JobNets::WriteSnapshot write_snapshot) {
  auto master = std::unique_ptr<JobMaster>(new JobMaster(
      std::move(nets), std::move(store), std::move(write_snapshot), encode(options.spec)));
  SPEEDO_TRY(master->load_weights(options.resume_from_store));
  SPEEDO_ASSIGN(master->merger_,
                make_merger(options.merger, master->nets_->layout(), master->nets_->solver(),
                            std::move(master->weights_), master->first_version_, master->store_,
                            parts.make_backend, options.initial_state.get()));
  std::promise<Result<Version>> published;
  master->merger_->publish([&](Result<Version> version) { published.set_value(version); });
  SPEEDO_TRY([&]() -> Result<void> {
    SPEEDO_ASSIGN([[maybe_unused]] const Version version, published.get_future().get());
    return master->store_->put_blob(job_key(), master->job_record_);
  }());
  return master;
}

// What an earlier run of the same job left in the store is either continued or removed.
Result<void> JobMaster::load_weights(bool resume) {
  weights_ = nets_->take_first_weights();
  if (!resume) return store_->clear();
  SPEEDO_ASSIGN(const RecordInfo info,
                get(*store_, weights_key(), nets_->layout().digest(), weights_));
  first_version_ = Version{info.version};
  return {};
}

void JobMaster::merge(master_command::StartMerge job,
                      std::function<void(Result<MergeResult>)> done) {
  merger_->merge(std::move(job), std::move(done));
}

void JobMaster::test(std::function<void(Result<std::vector<TestScores>>)> done) {
  merger_->copy([this, done = std::move(done)](Merger::Copy copy) {
    nets_->test(std::make_shared<const Merger::Copy>(std::move(copy)), done);
  });
}

void JobMaster::snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) {
  merger_->copy([this, iteration, done = std::move(done)](Merger::Copy copy) {
    nets_->snapshot(iteration, std::make_shared<const Merger::Copy>(std::move(copy)),
                    write_snapshot_, done);
  });
}

void JobMaster::watch(std::function<void(Error)> lost) {
  const Instant now = steady_clock().now();
  if (now - watched_at_ < kJobWatchInterval || watching_.exchange(true)) return;
  watched_at_ = now;
  housekeeping_.post([this, lost = std::move(lost)] {
    if (const auto restored = restore_store(); !restored) lost(restored.error());
    watching_ = false;
  });
}

// A store that was emptied, or restarted without its data. The weights are the merger's care.
Result<void> JobMaster::restore_store() {
  const auto job = store_->get_blob(job_key());
  if (job) return {};
  if (is_transient(job.error().code)) return job.error();
  SPEEDO_WARN("the store has lost the job; publishing it again: {}", job.error().message);
  store_->put_blob(job_key(), job_record_).ignore("the next watch tries again");
  return {};
}

void JobMaster::clean_up(std::uint64_t workers_joined) {
  for (std::uint64_t worker = 0; worker < workers_joined; ++worker) {
    const Result<void> erased = store_->erase(contribution_key(worker));
    if (!erased) {
      SPEEDO_WARN("contributions stay in the store: {}", erased.error().message);
      return;
    }
  }
}

}  // namespace speedo
