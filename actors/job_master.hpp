#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/store/parameter_store.hpp>

#include "actors/master_work.hpp"
#include "actors/node.hpp"
#include "train/job_nets.hpp"
#include "train/job_thread.hpp"

namespace speedo {

// The real MasterWork: one job's nets, store and merger.
class JobMaster : public MasterWork {
 public:
  // Puts the job into the store, with the weights that training begins from. Blocking.
  // `options.spec` has a seed. Errors: those of the store; kMismatch for stored weights of another
  // net.
  static Result<std::unique_ptr<JobMaster>> create(const MasterOptions& options,
                                                   const TrainerParts& parts,
                                                   std::unique_ptr<JobNets> nets,
                                                   std::shared_ptr<ParameterStore> store,
                                                   JobNets::WriteSnapshot write_snapshot);

  Digest model() const { return nets_->layout().digest(); }
  Version first_version() const { return first_version_; }

  void merge(master_command::StartMerge job,
             std::function<void(Result<MergeResult>)> done) override;
  void test(std::function<void(Result<std::vector<TestScores>>)> done) override;
  void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) override;
  void stop_tests() override { nets_->stop_tests(); }
  void watch(std::function<void(Error)> lost) override;

  // Removes the contributions of `workers_joined` workers. Weights and job stay, for a resumed run.
  void clean_up(std::uint64_t workers_joined);

 private:
  JobMaster(std::unique_ptr<JobNets> nets, std::shared_ptr<ParameterStore> store,
            JobNets::WriteSnapshot write_snapshot, std::string job_record);
  Result<void> load_weights(bool resume);
  Result<void> restore_store();

  const std::unique_ptr<JobNets> nets_;
  const std::shared_ptr<ParameterStore> store_;
  const JobNets::WriteSnapshot write_snapshot_;
  const std::string job_record_;
  std::vector<float> weights_;  // until the merger has them
  Version first_version_;
  Instant watched_at_{0};
  std::atomic<bool> watching_{false};
  std::unique_ptr<Merger> merger_;
  JobThread housekeeping_;  // last: its work uses the others
};

}  // namespace speedo
