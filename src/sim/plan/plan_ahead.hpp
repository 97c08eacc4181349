#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <speedo/base/result.hpp>

#include "sim/plan/plan.hpp"

namespace speedo::sim {

// Plans with the numbers 0, 1, ... for one who takes them in that order and may stop at any.
// Several threads work on those that it may take next; what it takes does not depend on them.
// Thread safety: one thread takes.
class PlanAhead {
 public:
  // Called by several threads at once. Ends early with any error once a stop is requested.
  using Make = std::function<Result<PlanResult>(std::size_t number, const std::stop_token& stop)>;

  // `count` plans in all. One thread: each is made when it is taken.
  PlanAhead(std::size_t count, std::size_t threads, Make make);
  // What nobody has taken is broken off.
  ~PlanAhead();
  PlanAhead(const PlanAhead&) = delete;
  PlanAhead& operator=(const PlanAhead&) = delete;

  // The next one. Blocking. Requires: not all were taken.
  Result<PlanResult> take();

 private:
  void work(const std::stop_token& stop);

  const std::size_t ahead_;  // of those that were taken
  const Make make_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_:
  std::vector<std::optional<Result<PlanResult>>> made_;  // by number
  std::size_t begun_ = 0, taken_ = 0;
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace speedo::sim
