#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include <speedo/train/strategy.hpp>

namespace speedo {

// Synchronous SGD; the rule is in the source.
class Sync : public Strategy {
 public:
  // `exact_workers`: 0, or runs of every round.
  explicit Sync(std::uint64_t exact_workers = 0) : exact_workers_(exact_workers) {}
  Commands on(const Event& event) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  Commands reported(WorkerId worker);
  Commands end_round();
  Commands start_round();
  Commands take_over();
  bool is_open() const { return !awaited_.empty() || missing_ > 0; }

  const std::uint64_t exact_workers_;
  std::set<WorkerId> alive_;
  std::set<WorkerId> in_round_;  // that were told to train in it
  std::set<WorkerId> awaited_;
  std::set<WorkerId> contributed_;
  std::uint64_t missing_ = 0;    // runs of the round that nobody does
};

std::unique_ptr<Strategy> make_sync(const StrategyOptions& options);

}  // namespace speedo
