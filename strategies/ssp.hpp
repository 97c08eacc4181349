#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include <speedo/train/strategy.hpp>

namespace speedo {

// Stale synchronous parallel; the rule is in the source.
class Ssp : public Strategy {
 public:
  explicit Ssp(std::uint64_t staleness) : staleness_(staleness) {}
  Commands on(const Event& event) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  Commands reported(WorkerId worker);
  Commands start_those_who_may();
  std::uint64_t slowest() const;
  std::uint64_t newcomers_clock() const;

  std::uint64_t staleness_;
  std::map<WorkerId, std::uint64_t> clocks_;  // runs that each live worker has finished
  std::set<WorkerId> parked_;                 // live workers that may not begin their next run yet
};

std::unique_ptr<Strategy> make_ssp(const StrategyOptions& options);

}  // namespace speedo
