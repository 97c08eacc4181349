#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "train/parts/part_seats.hpp"
#include "train/replicas/step_parts.hpp"
#include "train/trainer/coming_record.hpp"

namespace speedo {

// Steps of replicated updates in parts: each part's merger makes what its server has of one, which
// counts once the master has read it whole.
class JoinedSteps : public StepParts {
 public:
  // `desk`: see make_joined_merger().
  JoinedSteps(PartSetup setup, std::shared_ptr<PartDesk> desk);

  std::size_t parts() const override { return store_->parts(); }
  Result<MergeResult> merge(const MergeJob& job, RecordInfo info, const Room& room) override;
  void expect(const MergeJob& job, RecordInfo info, const Room& room) override;
  bool expects() const override { return coming_ != nullptr; }
  bool take_ahead() override;
  void forget() override { coming_.reset(); }

 private:
  StepHeader header_of(const MergeJob& job) const;
  Result<void> open_closed(std::uint32_t stage);
  Result<void> put(RecordInfo info, const StepHeader& header, const PartRound& round,
                   const StepRoom& room);

  const std::shared_ptr<ParameterStore> store_;
  const Clock& clock_;
  PartSeats seats_;
  std::optional<std::uint32_t> stage_;  // that the parts' mergers were opened for
  StepHeader expected_;
  std::unique_ptr<ComingRecord> coming_;  // of it; null: nothing is expected
};

}  // namespace speedo
