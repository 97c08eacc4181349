#include "actors/job_master.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include <speedo/base/limits.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/train/job_end.hpp>

#include "base/log.hpp"
#include "train/job_solver.hpp"

namespace speedo {
namespace {

// Floats of a contribution, in the stage whose contributions are the longest.
Result<std::uint64_t> longest_contribution(const MergerConfig& config, const JobNets& nets) {
  const auto weights = static_cast<std::uint64_t>(nets.layout().element_count());
  std::uint64_t longest = weights;
  for (const UpdateSpec& stage : config.stages) {
    if (!averages_histories(stage)) continue;
    SPEEDO_ASSIGN(const std::size_t count,
                  UpdateRule::history_count(solver_of(nets.solver(), stage)));
    longest = std::max(longest, weights * (1 + count));
  }
  return longest;
}

}  // namespace

JobMaster::JobMaster(std::unique_ptr<JobNets> nets, std::shared_ptr<ParameterStore> store,
                     WriteSnapshot write_snapshot, std::string job_record, std::uint64_t epoch)
    : store_(std::move(store)),
      write_snapshot_(std::move(write_snapshot)),
      job_record_(std::move(job_record)),
      epoch_(epoch),
      nets_(std::move(nets)) {}

Result<std::unique_ptr<JobMaster>> JobMaster::create(const MasterOptions& options,
                                                     const TrainerParts& parts,
                                                     std::unique_ptr<JobNets> nets,
                                                     std::shared_ptr<ParameterStore> store,
                                                     Checkpoint start,
                                                     WriteSnapshot write_snapshot) {
  auto master = std::unique_ptr<JobMaster>(
      new JobMaster(std::move(nets), std::move(store), std::move(write_snapshot),
                    encode(options.spec), options.merger.epoch));
  SPEEDO_ASSIGN(master->contribution_elements_,
                longest_contribution(options.merger, *master->nets_));
  SPEEDO_ASSIGN(master->merger_,
                make_merger(options.merger, master->nets_->layout(), master->nets_->solver(),
                            std::move(start), master->store_, parts.make_backend));
  return master;
}

Result<Version> JobMaster::begin(std::uint32_t stage, std::string state) {
  SPEEDO_TRY(erase_job_end(*store_));
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

void JobMaster::watch(std::function<void(Result<void>)> seen) {
  const Instant now = steady_clock().now();
  if (now - watched_at_ < kJobWatchInterval || watching_.exchange(true)) return;
  watched_at_ = now;
  housekeeping_.post([this, seen = std::move(seen)] {
    seen(restore_store());
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

void JobMaster::erase_worker(WorkerId worker) {
  housekeeping_.post([this, worker] {
    if (const auto erased = erase_records(worker.value); !erased) {
      SPEEDO_WARN("what worker {} left in the store stays until it expires: {}", worker.value,
                  erased.error().message);
    }
  });
}

Result<void> JobMaster::erase_records(std::uint64_t worker) {
  SPEEDO_TRY(store_->erase(contribution_key(epoch_, worker), contribution_elements_));
  return store_->erase(local_key(epoch_, worker));
}

void JobMaster::erase_workers(std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t worker = first; worker < end; ++worker) {
    const Result<void> erased = erase_records(worker);
    if (erased) continue;
    SPEEDO_WARN("contributions stay in the store until they expire: {}", erased.error().message);
    return;
  }
}

void JobMaster::put_end() {
  put_job_end(*store_, epoch_).ignore("workers that are away then look for the master for a while");
}

void JobMaster::stop_waiting() {
  store_->stop_waiting();
  merger_->stop_waiting();
}

}  // namespace speedo
