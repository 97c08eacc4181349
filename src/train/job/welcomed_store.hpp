#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/messages.hpp>

#include "train/job/open_store.hpp"

namespace speedo {

// The store that a master's welcome names, and the job in it. Connections are kept from one welcome
// to the next. Thread safety: store() from any thread, the rest one thread at a time.
class WelcomedStore {
 public:
  struct Options {
    StoreAddress store_override;  // used instead of what the master says, unless empty
    std::chrono::seconds store_timeout{0};  // store and job are waited for so long
    Platform* platform = &real_platform();
  };
  WelcomedStore(OpenStore open_store, Options options);

  using Stale = std::function<bool()>;  // whether nobody wants the answer any more
  // The job's record. A store that is out of reach is waited for, as the master does; and so is a
  // job that is not there: it may have been lost with the store's data, and the master, which
  // restores it soon, may be out of the store's reach.
  Result<std::string> wait_for_job(const WelcomeMessage& welcome, const Stale& stale);
  // The same of another record that the master writes with the job's.
  Result<std::string> wait_for_record(std::string_view key, const WelcomeMessage& welcome,
                                      const Stale& stale);
  // Of the last welcome; null if none was opened.
  std::shared_ptr<ParameterStore> store();
  // Whether the job is over, as far as that store knows; see is_job_over().
  bool is_over(std::uint64_t term);

 private:
  Result<std::string> read_record(std::string_view key, const WelcomeMessage& welcome);
  Result<std::shared_ptr<ParameterStore>> store_of(const WelcomeMessage& welcome);

  const OpenStore open_store_;
  const Options options_;
  std::mutex mutex_;
  std::shared_ptr<ParameterStore> store_;  // guarded by mutex_; of the last welcome, once opened
  std::string store_name_;                 // guarded by mutex_; what was opened
};

}  // namespace speedo
