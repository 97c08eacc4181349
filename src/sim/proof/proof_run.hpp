#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/train/master_session.hpp>

#include "sim/fault_ledger.hpp"
#include "sim/proof/proof_scenario.hpp"

namespace speedo::sim {

// What a simulated training is made of besides the scenario. The defaults are the real parts; tests
// break one of them, to see that the checkers notice.
struct ProofParts {
  // For gradient-only stages; one per master, used on the caller's thread.
  std::function<Result<std::unique_ptr<Backend>>()> make_backend;
  StrategyFactory make_strategy = speedo::make_strategy;
  bool fences = true;      // the store refuses what a stale master writes
  // Every line of the trace, as it happens.
  std::function<void(const std::string&)> trace;
};

struct MergeCounts {
  std::uint64_t all = 0;        // by all masters
  std::uint64_t ahead = 0;      // of them, begun before they were ordered
  std::uint64_t in_memory = 0;  // of them, all of whose workers share it with their master
  std::uint64_t replicated = 0;  // by workers themselves
  std::uint64_t coded = 0;      // of the others, of contributions that a codec has written
  std::uint64_t in_parts = 0;    // by a merger for each server's part
  std::uint64_t by_shards = 0;  // parts of merges that processes of their own have merged
  std::uint64_t put_off = 0;    // not counted in any: the store had lost a contribution to a round
  std::uint64_t unseen = 0;     // by parts, whose weights were gone when they were looked at
  MergeCounts& operator+=(const MergeCounts& other);
};

struct ProofResult {
  std::uint64_t hash = 0;              // of everything that happened
  std::uint64_t events = 0;            // that were handled
  MergeCounts merges;
  FaultTable faults{};                 // what became of them
  std::string check;                   // that found the violation; see violations.hpp
  std::string violation;               // empty: none
  std::vector<std::string> last_events;
};

// Simulates the training from its start to its end. One thread; several may simulate at once.
ProofResult run_proof(const Scenario& scenario, const ProofParts& parts);

}  // namespace speedo::sim
