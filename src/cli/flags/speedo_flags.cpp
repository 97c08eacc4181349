#include "cli/flags/speedo_flags.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/parse_number.hpp"
#include "cli/arguments.hpp"
#include "cli/hybrid.hpp"

namespace speedo {

namespace {

constexpr std::int64_t kSleepMax_s = 1000000000;

struct Replaced {
  const char* flag;  // squashed
  const char* shown;
  const char* remedy;
};

constexpr std::array<Replaced, 4> kReplaced{{
    {"start", "--start",
     "workers are given their place in the data by the master; --shard offset at the master gives "
     "worker k of N the place k/N, as SpeeDO did"},
    {"suffix", "--suffix",
     "each worker has a key of its own in Redis; --job at the master names the job's keys"},
    {"basedir", "--baseDir",
     "nothing is copied into a working folder: paths of a prototxt are relative to its folder, and "
     "a worker finds data there or in the folder that it is started in"},
    {"doubleprecision", "--doublePrecision",
     "weights are float32 in memory, in Redis and in files: leave the flag out"},
}};

constexpr Replaced kMasterAddress{
    "master", "--master",
    "this program is the master; SpeeDO's command line with --master starts a worker, which is: "
    "speedo-worker --master ADDRESS"};

const Replaced* find(const std::string& name, SpeedoProgram program) {
  if (program == SpeedoProgram::kMaster && name == kMasterAddress.flag) return &kMasterAddress;
  const auto* const found = std::find_if(kReplaced.begin(), kReplaced.end(),
                                         [&](const Replaced& each) { return name == each.flag; });
  return found == kReplaced.end() ? nullptr : found;
}

}  // namespace

std::vector<std::string> fold_speedo(const std::vector<std::string>& arguments) {
  return fold_words(fold_hybrid(arguments), "sleepafterfinish", 1);
}

Result<void> refuse_speedo_flags(const std::vector<std::string>& arguments, SpeedoProgram program) {
  for (const std::string& name : squashed_flags(arguments)) {
    const Replaced* flag = find(name, program);
    if (flag == nullptr) continue;
    return Error{ErrorCode::kUsage, std::string(flag->shown) +
                                        ": a flag of SpeeDO that is not needed here: " +
                                        flag->remedy};
  }
  return {};
}

Result<std::optional<std::chrono::seconds>> sleep_time(const std::string& value) {
  if (value == kUntilSignal) return std::optional<std::chrono::seconds>();
  const auto seconds = parse_number<std::int64_t>(value);
  if (!seconds || *seconds < 0 || *seconds > kSleepMax_s) {
    return Error{ErrorCode::kUsage, "--sleep-after-finish=" + value +
                                        ": takes whole seconds from 0 to " +
                                        std::to_string(kSleepMax_s) +
                                        ", or nothing, to stay until a signal comes"};
  }
  return std::optional<std::chrono::seconds>(*seconds);
}

}  // namespace speedo
