#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/train/job_status.hpp>

#include "actors/node.hpp"

namespace speedo {

// Asks a master how its job stands. Without histograms, which stay with the master.
// Thread safety: one thread.
class StatusClient {
 public:
  // `poll_stop`, a reason: what is under way is broken off. Errors: those of
  // GateCredentials::load().
  static Result<StatusClient> create(Address master, const GateFiles& files,
                                     std::function<std::optional<std::string>()> poll_stop);
  StatusClient(StatusClient&&) noexcept;
  ~StatusClient();

  // Blocking; connects first if there is no connection. Errors: kUnavailable, saying what was found
  // at the address, or that it does not answer; kMismatch if another version of SpeeDO is there;
  // kRefused if it does not let us in.
  Result<JobStatus> ask();

 private:
  struct Impl;
  explicit StatusClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace speedo
