#pragma once

#include <memory>
#include <set>

#include <speedo/train/strategy.hpp>

namespace speedo {

// Asynchronous SGD; the rule is in the source.
class Async : public Strategy {
 public:
  Commands on(const Event& event) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  Commands trained(WorkerId worker);
  Commands failed(WorkerId worker);

  std::set<WorkerId> running_;
};

std::unique_ptr<Strategy> make_async(const StrategyOptions& options);

}  // namespace speedo
