#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>

namespace CLI {
class App;
}

namespace speedo {

// The flags of speedo-master and `speedo run`: SpeeDO's, in any spelling, and ours.
struct ClusterFlags {
  std::string solver;
  std::string workers = "1";  // N or MIN:MAX

  std::string strategy;  // empty: async, or sync with --sync
  bool sync = false;
  bool gradient_only = false;
  std::optional<double> factor;
  std::uint32_t train = 1;
  double skip = 0.0;
  std::string shard = "disjoint";

  std::optional<std::int64_t> max_iter, start_iter, test_interval, batch, seed;
  std::optional<double> lr, momentum, weight_decay;

  bool resume = false;
  std::string snapshot, weights;

  std::string redis = "127.0.0.1:6379";
  std::string key_name;
  std::string host, bind = "127.0.0.1";
  std::uint16_t port = 0;
  bool insecure = false;
  std::string address_file;
  std::int64_t join_timeout_s = 0;
  std::int64_t worker_timeout_s = 3600;

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

// "N" or "MIN:MAX". Error: kUsage.
inline constexpr std::uint64_t kWorkersMax = 4096;  // more is a slip of the keyboard
struct WorkerRange {
  std::uint64_t min = 1, max = 1;
};
Result<WorkerRange> parse_workers(const std::string& text);

// Refuses flags that contradict each other, with the reason. Error: kUsage.
Result<void> check(const ClusterFlags& flags);

// The schedule that the flags choose.
std::string strategy_name(const ClusterFlags& flags);

}  // namespace speedo
