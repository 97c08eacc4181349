#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>

namespace speedo {

// Mastership of a job: claimed, renewed every kLeaseRenewal on a thread of its own, given up at the
// end. Thread safety: one thread.
class MasterLease {
 public:
  struct Options {
    std::string job;         // for messages
    bool take_over = false;  // whoever holds it
    std::function<std::optional<std::string>()> poll_stop;
  };

  // Claims the job in `store`, which should be the lease's own: a renewal must not wait behind
  // weights. Takes over at once from a process that is known to be dead; otherwise waits for the
  // end of another's lease, unless it is renewed. Blocking. Errors: kSuperseded, naming the holder;
  // kUnavailable if asked to stop meanwhile; those of the store.
  static Result<std::unique_ptr<MasterLease>> claim(std::shared_ptr<ParameterStore> store,
                                                    Options options);
  // Gives it up unless it is lost, or the store did not answer lately.
  ~MasterLease();

  std::uint64_t epoch() const { return claim_.epoch; }
  // From now on renews it. `lost` is called once, on the lease's thread, if another master has
  // claimed the job.
  void keep(std::function<void(Error)> lost);

 private:
  MasterLease(std::shared_ptr<ParameterStore> store, std::string job);
  Result<ClaimAnswer> ask();
  Result<void> wait_for_end(ClaimAnswer held, const Options& options);
  Error held_by(const std::string& holder, const char* why) const;
  void renew_until_stopped();
  std::optional<Error> renew();

  const std::shared_ptr<ParameterStore> store_;
  const std::string job_;
  MasterClaim claim_;
  std::function<void(Error)> lost_;
  bool held_ = false;  // and to be released
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace speedo
