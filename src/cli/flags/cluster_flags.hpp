#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "checkpoint/resume.hpp"
#include "checkpoint/rotation.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/flags/gate_flags.hpp"
#include "cli/flags/log_flags.hpp"
#include "cli/flags/non_finite_flags.hpp"
#include "cli/flags/parser_flags.hpp"
#include "cli/flags/remote_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/flags/schedule_flags.hpp"
#include "cli/flags/signal_flags.hpp"
#include "cli/worker_range.hpp"

namespace speedo {

// The flags of speedo-master and `speedo run`: SpeeDO's, in any spelling, and ours. What the table
// of options gives a value has none here.
struct ClusterFlags {
  std::string solver;
  std::string workers;  // N or MIN:MAX

  ScheduleFlags schedule;
  std::string hybrid, hybrid_file;  // stages as text or in a file; neither: one, of the above
  std::string shard, shard_by;
  std::uint64_t shards = 0;  // parts that the weights are merged in; 0: in one, by the master
  bool no_shard_copies = false;
  bool deterministic = false;
  std::optional<std::int64_t> start_iter, batch, seed;

  std::string resume;  // empty: no; "store", "auto", or a .speedo file
  bool take_over = false;
  std::string snapshot, weights;

  NonFiniteFlags non_finite;
  double clip_contributions = 0.0, robust = 0.0;  // 0: no

  std::optional<std::uint64_t> publish_interval, snapshot_interval;
  std::string output_root;  // empty: anywhere
  bool snapshot_workers = false;
  RotationRules rotation;

  std::string redis = "127.0.0.1:6379";  // an address, see take_secrets()
  std::string redis_password_file;
  RedisTlsFiles redis_tls;
  std::string max_rate;  // of kMaster; empty: no limit
  std::string iface;     // of kMaster; empty: none
  bool no_shared_memory = false;
  std::string data_root;        // of launches; empty: that of kRun, /
  std::string data_map;         // of kRun and launches; empty: all workers read the net's source
  std::string emulate_compute;  // of kRun; empty: workers compute
  std::string key_name;
  std::string host, bind;  // bind_address() tells what they come to
  std::uint16_t port = 0;
  bool insecure = false;        // of the gate
  bool insecure_redis = false;  // --insecure or --insecure-redis
  GateFlags gate;  // of kMaster
  std::string address_file;

  std::int64_t join_timeout_s = 0, below_min_timeout_s = 0, worker_timeout_s = 0;
  std::optional<std::int64_t> stall_timeout_s;
  std::int64_t store_timeout_s = 0, grace_period_s = 0;

  ComputeFlags compute;  // with kRun of all its processes

  bool cpu_db_actor = false;
  bool force = false;  // although memory is predicted not to suffice
  bool json = false;
  bool dry_run = false;
  std::string tensorboard;   // a folder; empty: none
  std::string curve;         // a file; empty: none
  std::string trace;         // a file; empty: none
  std::string metrics_addr;  // empty: nothing is served
  StateFlags state;  // of the train net
  LogFlags log;
  RemoteFlags remote;
  ParserFlags parser;
  SignalFlags signals;
  std::string sleep_after_finish;  // empty: no; else as sleep_time() takes it
};

enum class ClusterRole {
  kMaster,  // all flags
  kRun,     // without those of network and Redis, which `speedo run` chooses itself
};
ClusterFlags cluster_flags(const OptionValues& values);

RotationRules rotation_flags(const OptionValues& values);
// Error: kUsage.
Result<void> check(const RotationRules& rules);

inline constexpr const char* kResumeFromStore = "store";  // see kResumeNewest, too

// The address to listen on: --bind, or what workers are told to connect to, or the loopback.
std::string bind_address(const ClusterFlags& flags);
// Makes bind and host the address that --iface means, and returns it; without --iface empty.
// Errors: kUsage, also for one beside --bind or --host; those of choose_address().
Result<std::string> settle_interface(ClusterFlags& flags);

// Of a job's start: --snapshot or --weights. Beside --resume=auto either is what begins where there
// is no checkpoint. Error: kUsage for more than one, and for one beside another --resume.
Result<void> check_start_sources(const std::string& resume, const std::string& snapshot,
                                 const std::string& weights);

// Whether others than this machine may reach a port that lets everybody in, and are meant to.
bool is_open_to_others(const ClusterFlags& flags);

// Whether only this machine reaches what listens at `address`, by its text alone.
bool is_loopback(const std::string& address);

// Refuses flags that contradict each other, with the reason, and files of stages or groups that are
// wrong. Errors: kUsage, kConfig.
Result<void> check(const ClusterFlags& flags, ClusterRole role);

// As settle() of compute flags, with the kernels that --deterministic asks for.
Result<ComputeOptions> settle(const ClusterFlags& flags);

// The workers of a job. With --deterministic their number is fixed. Error: kUsage.
Result<WorkerRange> worker_range(const ClusterFlags& flags);

}  // namespace speedo
