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
  std::filesystem::path log_dir;  // of worker logs; empty: the temporary folder
};

// Trains on a cluster of this machine's own: a private redis-server behind a unix socket, one
// master, N workers, each a process. Reports workers that die and goes on without them; stops
// cleanly when a signal asks for it. Nothing is left afterwards, however this process ends; only
// after a failure the logs stay, and a line says where.
//
// Returns the master's exit code; the master has printed its result or its error line.
// Errors: kNotFound for a missing program, kUnavailable (also when all workers died), kCannotWrite.
Result<int> run_local_cluster(const LocalClusterOptions& options);

// The last non-empty line of a file, to quote from a log; empty if there is none.
std::string last_line(const std::filesystem::path& file);

}  // namespace speedo
