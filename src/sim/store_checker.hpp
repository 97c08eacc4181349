#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sim/proof_store.hpp"
#include "sim/violations.hpp"

namespace speedo::sim {

// What must hold of the published weights as readers of the store see them, after every operation
// that the server executes.
class StoreChecker {
 public:
  StoreChecker(StoreServer& server, const std::string& job, std::uint64_t publish_interval,
               Violations& violations);

  void granted(std::uint64_t epoch);
  void restarted();                      // with or without its data
  void done(const KvOperation& operation);

 private:
  struct Seen {
    std::uint64_t epoch = 0, version = 0, iteration = 0;
  };
  bool read(Seen& seen);
  StoreServer& server_;
  const std::string manifest_key_;
  const std::uint64_t publish_interval_;
  Violations& violations_;
  Seen last_;
  std::uint64_t granted_ = 0;  // the highest epoch that the store knows
  std::uint64_t newest_ = 0;   // the highest ever granted
};

}  // namespace speedo::sim
