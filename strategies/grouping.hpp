#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/train/strategy.hpp>

#include "sync.hpp"
#include "worker_speeds.hpp"

namespace speedo {

// MXNet-G's grouping; the rule is in the source.
class Grouping : public Strategy {
 public:
  // Requires: check_grouping(options) succeeds.
  explicit Grouping(const StrategyOptions& options);
  Commands on(const Event& event) override;
  std::string save() const override { return speeds_.save(); }
  Result<void> restore(std::string_view state) override { return speeds_.restore(state); }

 private:
  using GroupId = std::uint64_t;
  struct Member {
    GroupId group = 0;   // whose round it is in
    GroupId target = 0;  // the group to go to when that round is over
  };
  Commands joined(const Joined& event);
  Commands left(const Left& event);
  Commands reported(WorkerId worker, const Event& event, std::uint64_t samples,
                    std::uint64_t duration_us);
  Commands in_group(GroupId group, const Event& event);
  Commands enter(const std::map<GroupId, std::vector<WorkerId>>& arrivals);
  GroupId first_group(const std::string& name);
  void regroup_if_due();
  void regroup();

  const std::vector<std::vector<std::string>> listed_;
  const std::uint64_t group_count_;
  const std::uint64_t regroup_interval_;

  std::map<WorkerId, Member> members_;   // every live worker
  std::map<GroupId, Sync> groups_;       // with at least one member
  GroupId next_group_;                   // those below are listed, or were in use
  WorkerSpeeds speeds_;
  std::set<WorkerId> founders_;          // live and began training; until the first grouping
  std::set<WorkerId> placed_;            // live and settled at the last grouping
  bool begun_ = false;
  std::uint64_t reports_ = 0;            // since the last measurement
};

Result<void> check_grouping(const StrategyOptions& options);
std::unique_ptr<Strategy> make_grouping(const StrategyOptions& options);

}  // namespace speedo
