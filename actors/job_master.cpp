#include "actors/job_master.hpp"

#include <future>
#include <string_view>
#include <utility>

#include <speedo/base/limits.hpp>

#include "base/log.hpp"

namespace speedo {
namespace {

// A blob that is there while no master of the job works, or should.
constexpr std::string_view kEndedKey = "ended";

}  // namespace

JobMaster::JobMaster(std::unique_ptr<JobNets> nets, std::shared_ptr<ParameterStore> store,
                     WriteSnapshot write_snapshot, std::string job_record, std::uint64_t epoch)
    : nets_(std::move(nets)),
      store_(std::move(store)),
      write_snapshot_(std::move(write_snapshot)),
      job_record_(std::move(job_record)),
      epoch_(epoch) {}

Result<std::unique_ptr<JobMaster>> JobMaster::create(const MasterOptions& options,
                                                     const TrainerParts& parts,
                                                     std::unique_ptr<JobNets> nets,
                                                     std::shared_ptr<ParameterStore> store,
                                                     Checkpoint start,
                                                     WriteSnapshot write_snapshot) {
  auto master = std::unique_ptr<JobMaster>(
      new JobMaster(std::move(nets), std::move(store), std::move(write_snapshot),
                    encode(options.spec), options.merger.epoch));
  SPEEDO_ASSIGN(master->merger_,
                make_merger(options.merger, master->nets_->layout(), master->nets_->solver(),
                            std::move(start), master->store_, parts.make_backend));
  return master;
}

Result<Version> JobMaster::begin(std::uint32_t stage, std::string state) {
  const auto ended = store_->get_blob(kEndedKey);
  has_orphans_ = !ended && store_->get_blob(job_key());
  SPEEDO_TRY(store_->erase(kEndedKey));
  std::promise<Result<Version>> published;
  merger_->enter_stage(stage, std::move(state),
                       [&](Result<Version> version) { published.set_value(std::move(version)); });
  SPEEDO_ASSIGN(const Version version, published.get_future().get());
  SPEEDO_TRY(store_->put_blob(job_key(), job_record_));
  return version;
}

void JobMaster::merge(master_command::StartMerge job,
                      std::function<void(Result<MergeResult>)> done) {
  merger_->merge(std::move(job), std::move(done));
}

void JobMaster::enter_stage(std::uint32_t stage, std::string state,
                            std::function<void(Result<Version>)> done) {
  merger_->enter_stage(stage, std::move(state), std::move(done));
}

void JobMaster::test(std::function<void(Result<std::vector<TestScores>>)> done) {
  merger_->copy([this, done = std::move(done)](Merger::Copy copy) {
    nets_->test(std::make_shared<const Merger::Copy>(std::move(copy)), done);
  });
}

void JobMaster::snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) {
  merger_->copy([this, iteration, done = std::move(done)](Merger::Copy copy) {
    const auto write = [this](std::int64_t number, const caffe::NetParameter& model,
                              caffe::SolverState& state, const std::string& session) {
      return write_snapshot_(SnapshotParts{.iteration = number,
                                           .model = model,
                                           .state = state,
                                           .session = session,
                                           .model_digest = nets_->layout().digest()});
    };
    nets_->snapshot(iteration, std::make_shared<const Merger::Copy>(std::move(copy)), write, done);
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

void JobMaster::clean_up(std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t worker = first; worker < end; ++worker) {
    for (const std::string& key : {contribution_key(epoch_, worker), local_key(epoch_, worker)}) {
      const Result<void> erased = store_->erase(key);
      if (erased) continue;
      SPEEDO_WARN("contributions stay in the store: {}", erased.error().message);
      return;
    }
  }
  store_->put_blob(kEndedKey, "").ignore("a new master then waits a little for workers");
}

}  // namespace speedo
