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

std::int64_t snapshots_left(std::int64_t first, std::int64_t last, std::int64_t interval,
                            std::int64_t keep) {
  std::int64_t count = 1;
  // Those before the last one, at multiples of the interval.
  if (interval > 0 && last > first) count += (last - 1) / interval - first / interval;
  return keep > 0 ? std::min(count, keep) : count;
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
        "{}: too little for the {} that this training writes (--keep-snapshots keeps "
        "fewer)",
        text, need.count);
  } else {
    SPEEDO_INFO("Room for snapshots: {}", text);
  }
  return {};
}

}  // namespace speedo
