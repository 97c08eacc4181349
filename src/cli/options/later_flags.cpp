#include "cli/options/later_flags.hpp"

#include <algorithm>
#include <array>

#include "cli/arguments.hpp"

namespace speedo {

namespace {

struct LaterFlag {
  const char* flag;  // squashed
  const char* shown;
  const char* what;
  const char* remedy;
};

constexpr std::array<LaterFlag, 6> kLaterFlags{{
    {"hdfs", "--hdfs", "the HDFS store", "built: Redis, --redis HOST[:PORT]"},
    {"runid", "--run-id", "a name for one run", "--job NAME names the job"},
    {"loglevel", "--log-level", "a choice of log levels", "--debug logs more"},
    {"maxmessagebytes", "--max-message-bytes", "a limit for messages",
     "none is longer than 4096 bytes: who sends one is cut off"},
    {"heartbeatinterval", "--heartbeat-interval", "a choice of the heartbeat's interval",
     "--worker-timeout says when a worker counts as dead"},
    {"maxstaleness", "--max-staleness", "a limit for stale contributions",
     "--staleness or --weedout bound it"},
}};

}  // namespace

Result<void> refuse_later_flags(const std::vector<std::string>& arguments) {
  for (const std::string& name : squashed_flags(arguments)) {
    const auto* const flag = std::find_if(kLaterFlags.begin(), kLaterFlags.end(),
                                          [&](const LaterFlag& each) { return name == each.flag; });
    if (flag == kLaterFlags.end()) continue;
    return Error{ErrorCode::kUsage, std::string(flag->shown) + ": " + flag->what +
                                        " is not built yet (" + flag->remedy + ")"};
  }
  return {};
}

}  // namespace speedo
