#include "train/replicas/step_header.hpp"

#include <cmath>

#include <speedo/store/layout.hpp>
#include <speedo/store/record_store.hpp>

#include "speedo.pb.h"

namespace speedo {

std::string encode(const StepHeader& header) {
  record::Step message;
  message.set_iteration(header.iteration);
  message.set_rate_scale(header.rate_scale);
  message.set_contributions(header.contributions);
  message.set_parts(header.parts);
  return message.SerializeAsString();
}

Result<StepHeader> decode_step_header(const std::string& bytes) {
  record::Step message;
  const bool is_sound = message.ParseFromString(bytes) && message.contributions() > 0 &&
                        message.contributions() <= kStepContributionsMax &&
                        message.parts() > 0 && message.parts() <= kRecordServersMax &&
                        std::isfinite(message.rate_scale()) && message.rate_scale() >= 0.0F;
  if (!is_sound) {
    return Error{ErrorCode::kCorrupt, "a step in the store is damaged, or of another version of "
                                      "speedo-master"};
  }
  return StepHeader{message.iteration(), message.rate_scale(), message.contributions(),
                    message.parts()};
}

std::string step_key(std::uint64_t term) {
  return handout_key_prefix() + std::to_string(term) + "/step";
}

}  // namespace speedo
