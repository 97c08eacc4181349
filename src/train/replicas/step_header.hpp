#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// What the record of a step says of itself beside its values: how the rule applies it. Version and
// base version of its RecordInfo are those of the weights after and before it.
struct StepHeader {
  std::uint64_t iteration = 0;
  float rate_scale = 1.0F;          // on the solver's rate
  std::uint64_t contributions = 1;  // whose mean it is, 1 to kStepContributionsMax
  std::uint64_t parts = 1;          // see StepLayout, 1 to kRecordServersMax
  bool operator==(const StepHeader&) const = default;
};

inline constexpr std::uint64_t kStepContributionsMax = 1U << 20U;

std::string encode(const StepHeader& header);
// Error: kCorrupt.
Result<StepHeader> decode_step_header(const std::string& bytes);

// Key of the steps that a master of this term publishes. It expires as contributions do.
std::string step_key(std::uint64_t term);

}  // namespace speedo
