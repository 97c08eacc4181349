#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "train/parts/part_seats.hpp"
#include "train/replicas/step_parts.hpp"

namespace speedo {

// Steps of replicated updates in parts: each part's merger makes what its server has of one, which
// counts once the master has read it whole.
class JoinedSteps : public StepParts {
 public:
  // `desk`: see make_joined_merger().
  JoinedSteps(PartSetup setup, std::shared_ptr<PartDesk> desk);

  Result<MergeResult> merge(const MergeJob& job, RecordInfo info, const Room& room) override;
  void expect(const MergeJob& job) override { seats_.tell_all(part_order::Expect{job}); }

 private:
  Result<void> open_closed(std::uint32_t stage);
  Result<void> put(RecordInfo info, const StepHeader& header, const PartRound& round,
                   std::span<float> values);

  const std::shared_ptr<ParameterStore> store_;
  PartSeats seats_;
  std::optional<std::uint32_t> stage_;  // that the parts' mergers were opened for
};

}  // namespace speedo
