#include "checkpoint/snapshot_room.hpp"

#include <algorithm>
#include <system_error>

#include <speedo/core/update_rule.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"

namespace speedo {

namespace fs = std::filesystem;

Result<std::int64_t> snapshot_bytes(std::int64_t weight_bytes,
                                    const caffe::SolverParameter& solver) {
  SPEEDO_ASSIGN(const std::size_t histories, UpdateRule::history_count(solver));
  const std::int64_t in_model = solver.snapshot_diff() ? 2 : 1;
  return (in_model + static_cast<std::int64_t>(histories)) * weight_bytes;
}

std::int64_t snapshots_at_once(std::int64_t first, std::int64_t last, std::int64_t interval,
                               const RotationRules& rules) {
  std::int64_t count = 1;
  // Those before the last one, at multiples of the interval.
  if (interval > 0 && last > first) count += (last - 1) / interval - first / interval;
  if (!rules.keep) return count;
  const auto keep = static_cast<std::int64_t>(
      std::min<std::uint64_t>(*rules.keep, static_cast<std::uint64_t>(count)));
  return std::min(count, keep + 1 + (rules.keep_best ? 1 : 0));
}

Result<void> check_snapshot_room(const std::string& prefix, const SnapshotNeed& need) {
  const fs::path parent = fs::path(prefix).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  std::error_code code;
  const fs::space_info space = fs::space(folder, code);
  if (code) return {};
  return judge_snapshot_room(
      fs::absolute(folder, code).lexically_normal(),
      static_cast<std::int64_t>(std::min<std::uintmax_t>(space.available, INT64_MAX)), need);
}

Result<void> judge_snapshot_room(const fs::path& folder, std::int64_t free_bytes,
                                 const SnapshotNeed& need) {
  const std::string text =
      fmt::format("a snapshot takes {}, and {} are free in '{}'", format_bytes(need.bytes),
                  format_bytes(free_bytes), folder.string());
  if (free_bytes < need.bytes) {
    return Error{ErrorCode::kCannotWrite,
                 text + ": make room, or change snapshot_prefix in the solver"};
  }
  if (free_bytes / std::max<std::int64_t>(need.bytes, 1) < need.count) {
    SPEEDO_WARN(
        "{}: too little for the {} that lie there at once (--keep-snapshots keeps fewer, and "
        "needs room for one more while it is written)",
        text, need.count);
  } else {
    SPEEDO_INFO("Room for snapshots: {}", text);
  }
  return {};
}

}  // namespace speedo
