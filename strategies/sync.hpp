#pragma once

#include <memory>
#include <set>

#include <speedo/train/strategy.hpp>

namespace speedo {

// Synchronous SGD; the rule is in the source.
class Sync : public Strategy {
 public:
  Commands on(const Event& event) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  Commands reported(WorkerId worker);
  Commands end_round();
  Commands start_round();

  std::set<WorkerId> alive_;
  std::set<WorkerId> awaited_;
  std::set<WorkerId> contributed_;
};

std::unique_ptr<Strategy> make_sync(const StrategyOptions& options);

}  // namespace speedo
