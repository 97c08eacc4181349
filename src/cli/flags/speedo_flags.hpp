#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

// Command lines as SpeeDO's users have them: what its flags took, and those of them that this
// project has another way for.
namespace speedo {

// Joins what such a flag takes in several arguments, or may take, into one: the stages behind
// --hybrid, the seconds behind --sleepAfterFinish.
std::vector<std::string> fold_speedo(const std::vector<std::string>& arguments);

enum class SpeedoProgram { kMaster, kWorker };

// Refuses the flags of SpeeDO that mean nothing here, in any spelling, each with what takes its
// place. Error: kUsage.
Result<void> refuse_speedo_flags(const std::vector<std::string>& arguments, SpeedoProgram program);

// What --sleep-after-finish stands for without a number.
inline constexpr const char* kUntilSignal = "until-signal";

// How long to stay after the end: the seconds that `value` says, nothing for kUntilSignal.
// Error: kUsage if it is neither.
Result<std::optional<std::chrono::seconds>> sleep_time(const std::string& value);

}  // namespace speedo
