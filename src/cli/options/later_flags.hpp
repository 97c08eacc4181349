#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Refuses the flags of SpeeDO whose store or device this build does not have, saying so.
// Error: kUsage.
Result<void> refuse_later_flags(const std::vector<std::string>& arguments);

}  // namespace speedo
