#include "cli/flags/worker_names.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/flags/shard_by.hpp"
#include "cli/stages.hpp"

namespace speedo {

namespace {

// Those to compare with, and as what they are told.
struct Known {
  const std::vector<std::string>& names;
  const std::string& here;

  bool has(const std::string& name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  std::string complaint(const std::string& name) const {
    return fmt::format("names '{}', which no worker is: here they are {}", name, here);
  }
};

Result<void> check_groups(const ClusterFlags& flags, const Known& known) {
  SPEEDO_ASSIGN(const std::vector<Schedule> stages, make_stages(flags));
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::string place = flags.schedule.groups.empty()
                                  ? fmt::format("stage {}: the group file", stage + 1)
                                  : "the group file " + flags.schedule.groups;
    for (const std::vector<std::string>& group : stages[stage].strategy.groups) {
      for (const std::string& name : group) {
        if (known.has(name)) continue;
        return Error{ErrorCode::kConfig, place + " " + known.complaint(name)};
      }
    }
  }
  return {};
}

}  // namespace

Result<void> check_worker_names(const ClusterFlags& flags, const std::vector<std::string>& names,
                                const std::string& here) {
  const Known known{names, here};
  SPEEDO_TRY(check_groups(flags, known));
  SPEEDO_ASSIGN(const ShardBy by, parse_shard_by(flags.shard_by));
  for (const auto& [name, ratio] : by.ratios) {
    if (known.has(name)) continue;
    return Error{ErrorCode::kUsage,
                 "--shard-by " + flags.shard_by + " " + known.complaint(name)};
  }
  return {};
}

}  // namespace speedo
