#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "cli/flags/compute_flags.hpp"
#include "cli/net_inputs.hpp"
#include "doctor/finding.hpp"
#include "gate/credentials.hpp"
#include "measure/memory_guard.hpp"

namespace speedo {

// What `speedo doctor` and --dry-run look at, besides the machine.
struct Examination {
  std::string solver;    // of a job; empty: none
  std::string refusal;   // what its start would be refused for; empty: nothing
  StateFlags state;
  std::uint64_t workers = 1;  // of the job, all of which use the store
  bool trains_here = true;    // they share this machine's memory, too
  // What they and their master and store are predicted to take, if all of them are to be here.
  std::optional<ClusterDemand> cluster;
  bool force = false;    // what is more than there is is a warning
  std::string redis;     // address; empty: none is looked at
  RedisCredentials credentials;
  RedisTlsFiles redis_tls;
  std::string source;    // Redis and the master are reached from it; empty: as the routes say
  std::string master;    // address of one that a worker is to join; empty: none
  GateFiles gate;        // what proves to it who comes
  struct Listening {
    std::string bind, host;  // host: told to workers; empty: bind
    std::uint16_t port = 0;
  };
  std::optional<Listening> listening;  // a master is to run here
  ComputeFlags compute;
  bool json = false;
};

// Makes all checks. Error: kUsage for flags that the machine cannot follow.
Result<Findings> findings_of(const Examination& examination);

// Returns the exit code: 1 if there is a problem.
int print_findings(const Findings& findings, bool json);

// Both. Error: as findings_of().
Result<int> examine(const Examination& examination);

}  // namespace speedo
