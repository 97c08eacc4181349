#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/train/master_session.hpp>

#include "train/job/job_master.hpp"
#include "train/job/job_memory.hpp"
#include "train/job/job_start.hpp"
#include "train/job/master_lease.hpp"
#include "train/job/master_options.hpp"
#include "train/job/open_store.hpp"

namespace speedo {

// The options with what follows from them filled in. Errors: kUsage, kConfig for what no master can
// run by.
Result<MasterOptions> complete(const MasterOptions& options);

// Everything of a master but what speaks with its workers: mastership, job and session, from the
// choice of where training goes on to what is left behind in the store.
// Thread safety: one thread; session and job are lent to the shell that drives them.
class MasterRun {
 public:
  struct Parts {
    const MasterHooks& hooks;  // outlives the run
    const TrainerParts& parts;
    const OpenStore& open_store;
    // The mastership has gone to another master; called on the lease's thread.
    std::function<void(Error)> lost;
  };
  // Blocking: claims the job, chooses what it goes on from, publishes the first weights. The nets
  // are made before the claim: a job that cannot run must not take the store from another master,
  // nor change anything there. Errors: see run_master().
  static Result<MasterRun> prepare(MasterOptions options, Parts parts);
  MasterRun(MasterRun&&) = default;
  // However training ended, or if it never began: the store is not waited for any longer.
  ~MasterRun() { stop_waiting(); }

  MasterSession& session() { return *session_; }
  JobMaster& job() { return *job_; }
  bool resumed() const { return resumed_; }
  // Workers of an earlier master may be looking for this one.
  bool has_orphans() const { return has_orphans_; }
  std::uint64_t term() const { return lease_->term(); }

  // What is left behind in the store when training is over. `broken`: its workers were told
  // nothing, and look for the next master.
  void end(const std::optional<Error>& error, bool broken);

 private:
  MasterRun() = default;
  Result<JobStart> begin_session(MasterOptions& options, const Parts& parts,
                                 ParameterStore& store, JobNets& nets);
  void stop_waiting();

  // Members end in the opposite order: the lease goes last, when nothing can be written any more.
  std::shared_ptr<ParameterStore> lease_store_;  // its connections are the lease's own
  std::unique_ptr<MasterLease> lease_;
  std::unique_ptr<JobMaster> job_;
  JobMemory memory_;
  std::unique_ptr<MasterSession> session_;
  bool resumed_ = false;
  bool has_orphans_ = false;
};

}  // namespace speedo
