#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

struct LocalClusterOptions {
  std::vector<std::string> master_flags;  // passed on to speedo-master
  std::uint64_t workers = 1;
  std::uint64_t max_restarts = 0;  // of each worker
  std::vector<std::string> worker_flags;  // passed on to every speedo-worker
  std::vector<int> threads;               // of each worker: as many as there are workers
  // Of each worker, if they are pinned; else empty.
  std::vector<std::vector<int>> processors;
  std::uint64_t predicted_memory_bytes = 0;  // of a worker; 0: unknown
  std::string snapshot_prefix, job;          // of the master's checkpoint files
  bool json = false;               // what the master prints as its result
  std::filesystem::path log_dir;  // of worker logs; empty: the temporary folder
};

// Trains on a cluster of this machine's own: a private redis-server behind a unix socket, one
// master, N workers, each a process. Starts workers that die again, with a growing delay, or
// goes on without them; prints the master's result with the number of restarts; stops cleanly when
// a signal asks for it. Nothing is left afterwards, however this process ends; only
// after a failure the logs stay, and a line says where.
//
// Returns the master's exit code; the master has printed its error line, if any.
// Errors: kNotFound for a missing program, kUnavailable (also when all workers died), kCannotWrite.
Result<int> run_local_cluster(const LocalClusterOptions& options);

// What a worker is called, in the master's log and in group files: "worker0".
std::string worker_name(std::uint64_t number);

// The last non-empty line of a file, to quote from a log; empty if there is none.
std::string last_line(const std::filesystem::path& file);

}  // namespace speedo
