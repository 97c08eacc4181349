#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/pause.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/master_store.hpp>

namespace speedo {

// Mastership of a job: claimed, renewed every kLeaseRenewal on a thread of its own, given up at the
// end. Thread safety: one thread.
class MasterLease {
 public:
  struct Options {
    std::string job;         // for messages
    std::string remedy = "stop it first, or give this one another name with --job";
    bool take_over = false;  // whoever holds it
    // A new term is not below it: that of the checkpoint to go on from, and one more. The store
    // may have been emptied, and this machine's clock be behind.
    std::uint64_t term_floor = 0;
    std::function<std::optional<std::string>()> poll_stop;
    Platform* platform = &real_platform();
    std::shared_ptr<Pause> pause = nullptr;  // of the lease alone; null: in the platform's time
  };

  // Claims the job in `store`, which should be the lease's own: a renewal must not wait behind
  // weights. Takes over at once from a process that is known to be dead; otherwise waits for the
  // end of another's lease, unless it is renewed. Blocking. Errors: kSuperseded, naming the holder;
  // kUnavailable if asked to stop meanwhile; those of the store.
  static Result<std::unique_ptr<MasterLease>> claim(std::shared_ptr<MasterStore> store,
                                                    Options options);
  // Gives it up unless it is lost, or the store did not answer lately.
  ~MasterLease();

  std::uint64_t term() const { return claim_.term; }
  // Another master had the job, or may have had it, until now.
  bool was_held() const { return was_held_; }
  // From now on renews it. `lost` is called once, on the lease's thread, if that ends before the
  // lease does: kSuperseded if another master has claimed the job, kInternal if renewing throws.
  void keep(std::function<void(Error)> lost);

 private:
  MasterLease(std::shared_ptr<MasterStore> store, const Options& options);
  Result<ClaimAnswer> ask();
  Result<void> wait_for_end(ClaimAnswer held, const Options& options);
  Error held_by(const std::string& holder, const char* why) const;
  Result<void> renew_until_ended();
  Result<void> renew();

  const std::shared_ptr<MasterStore> store_;
  Platform& platform_;
  const std::string job_, remedy_;
  const std::shared_ptr<Pause> pause_;
  MasterClaim claim_;
  bool held_ = false;  // and to be released
  bool was_held_ = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace speedo
