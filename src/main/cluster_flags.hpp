#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

#include "main/compute_flags.hpp"
#include "main/schedule_flags.hpp"
#include "main/worker_range.hpp"

namespace CLI {
class App;
}

namespace speedo {

// The flags of speedo-master and `speedo run`: SpeeDO's, in any spelling, and ours.
struct ClusterFlags {
  std::string solver;
  std::string workers = "1";  // N or MIN:MAX

  ScheduleFlags schedule;
  std::string hybrid, hybrid_file;  // stages as text or in a file; neither: one, of the above
  std::string shard = "disjoint", shard_by = "equal";
  bool deterministic = false;
  std::optional<std::int64_t> start_iter, batch, seed;

  std::string resume;  // empty: no; "store", "auto", or a .speedo file
  bool take_over = false;
  std::string snapshot, weights;

  std::optional<std::uint64_t> publish_interval, snapshot_interval, keep_snapshots;
  bool keep_best = false;

  std::string redis = "127.0.0.1:6379";
  std::string key_name;
  std::string host, bind = "127.0.0.1";
  std::uint16_t port = 0;
  bool insecure = false;
  std::string address_file;

  std::int64_t join_timeout_s = 0, below_min_timeout_s = 0, worker_timeout_s = 10;
  std::optional<std::int64_t> stall_timeout_s;

  ComputeFlags compute;  // with kRun of all its processes

  std::string device = "cpu";
  bool cpu_db_actor = false;
  bool json = false;
  bool debug = false;
  bool sleep_after_finish = false;
};

enum class ClusterRole {
  kMaster,  // all flags
  kRun,     // without those of network and Redis, which `speedo run` chooses itself
};
void add_cluster_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role);

inline constexpr const char* kResumeFromStore = "store";
inline constexpr const char* kResumeNewest = "auto";

// Refuses flags that contradict each other, with the reason, and files of stages or groups that are
// wrong. Errors: kUsage, kConfig.
Result<void> check(const ClusterFlags& flags, ClusterRole role);

// The workers of a job. With --deterministic their number is fixed. Error: kUsage.
Result<WorkerRange> worker_range(const ClusterFlags& flags);

}  // namespace speedo
