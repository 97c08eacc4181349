#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include <speedo/train/strategy.hpp>

namespace speedo {

// SpeeDO's weed-out; the rule is in the source.
class Weedout : public Strategy {
 public:
  // Requires: window >= 1.
  explicit Weedout(std::uint64_t window);
  Commands on(const Event& event) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  // Puts the sender into the ring. Returns whether what it sent is in time.
  bool report(WorkerId worker);
  void drop_oldest();

  std::uint64_t window_;
  std::uint64_t vacant_ = 0;  // places that the ring lacks to be full
  bool begun_ = false;
  // The ring is the places oldest_ .. next_ - 1 of an endless row; of each worker only its newest
  // place matters. Whoever has none in the ring is not in the map.
  std::int64_t oldest_ = 0;
  std::int64_t next_ = 0;
  std::map<WorkerId, std::int64_t> place_;
};

Result<void> check_weedout(const StrategyOptions& options);
std::unique_ptr<Strategy> make_weedout(const StrategyOptions& options);

}  // namespace speedo
