#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include <speedo/train/strategy.hpp>

namespace speedo {

// SpeeDO's partial synchronisation; the rule is in the source.
class PartialSync : public Strategy {
 public:
  // Requires: max_advance >= 1.
  explicit PartialSync(std::uint64_t max_advance);
  Commands on(const Event& event) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  Commands reported(WorkerId worker);
  Commands caught_up();
  bool in_catch_up() const { return !awaited_.empty(); }
  std::uint64_t lead() const;
  std::uint64_t fastest() const;

  std::uint64_t max_advance_;
  std::map<WorkerId, std::uint64_t> counters_;  // of every live worker
  std::set<WorkerId> awaited_;                  // of a catch-up
};

Result<void> check_partial_sync(const StrategyOptions& options);
std::unique_ptr<Strategy> make_partial_sync(const StrategyOptions& options);

}  // namespace speedo
