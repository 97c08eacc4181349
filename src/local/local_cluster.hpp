#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "local/children.hpp"
#include "local/private_redis.hpp"

namespace speedo {

// What the processes of a cluster need to find its master and to be let in.
struct MasterPlace {
  std::string address;
  std::filesystem::path token_file;  // of this machine
};

// A worker of a cluster: a process of this machine, be it one that speaks with another machine.
struct WorkerProcess {
  std::string name;  // in the log, and of its own log file
  // What starts it, given its master; its output goes to that file. Errors: its own.
  std::function<Result<ChildCommand>(const MasterPlace& master)> command;
  bool trains = true;  // else it merges a shard: training goes on without it
  std::uint64_t workers = 1;  // that it brings
};

// How far a master's training is.
enum class TrainingState { kAwaited, kGoesOn, kOver };

struct LocalClusterOptions {
  std::vector<std::string> master_flags;  // passed on to speedo-master
  // The Redis to use, or several, one for each shard; what they need of their own goes into a
  // folder that ends with the cluster. User and password are the first's.
  std::function<Result<std::vector<RedisPlace>>(const std::filesystem::path& folder)> redis;
  std::vector<WorkerProcess> workers;     // at least one
  std::filesystem::path token_file;  // of the cluster; empty: one of its own is drawn
  std::uint64_t max_restarts = 0;  // of each worker
  // Workers without which training does not begin, and what says how far it is (nothing: unknown).
  // If fewer are left before, and will not come back, the cluster ends.
  std::uint64_t needed_workers = 1;
  std::function<std::optional<TrainingState>(const MasterPlace& master)> state = {};
  std::uint64_t predicted_memory_bytes = 0;  // of a worker; 0: unknown
  std::string snapshot_prefix, job;          // of the master's checkpoint files
  bool json = false;               // what the master prints as its result
  std::filesystem::path log_dir;  // of worker logs; empty: the temporary folder
};

// Trains on a cluster of processes that are started here: a redis-server, one master, N workers.
// Starts workers that die again, with a growing delay, or goes on without them; starts
// redis-servers again, kRedisRestartsMax times in a row; prints the master's result with the number
// of restarts; stops cleanly when a signal asks for it. Nothing is left afterwards, however this
// process ends; only after a failure the logs stay, and a line says where.
//
// Returns the master's exit code; the master has printed its error line, if any.
// Errors: kNotFound for a missing program, kUnavailable (also when all workers died), kCannotWrite.
Result<int> run_local_cluster(const LocalClusterOptions& options);

// What a worker of `speedo run` is called, in the master's log and in group files: "worker0".
std::string worker_name(std::uint64_t number);

// A program of ours, beside the one that runs.
std::string own_program(const char* name);

// The last non-empty line of a file, to quote from a log; empty if there is none.
std::string last_line(const std::filesystem::path& file);

}  // namespace speedo
