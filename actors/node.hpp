#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/store_address.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/trainer.hpp>
#include <speedo/train/worker_session.hpp>

#include "gate/credentials.hpp"
#include "store/shared/memory_exchange.hpp"
#include "train/job/master_options.hpp"
#include "train/job/open_store.hpp"

namespace speedo {

// A master or a worker as a whole, without a word of CAF: what main() calls.

// Runs until training is over or stopped. Blocking. Claims the job in the store first; while
// another master holds it, waits for the end of its lease, and fails if it is renewed. Errors:
// kUnavailable (also a port in use), kRefused, kConfig, kData, kNotFinite, kSuperseded (another
// master holds the job, or has taken it over), kNotFound (nothing to resume); those of
// GateCredentials::load().
struct MasterGate {
  GateFiles files;
  bool warns = false;  // every minute, that the port is open to everybody
};
Result<MasterProgress> run_master(const MasterOptions& options, const MasterHooks& hooks,
                                  const TrainerParts& parts, const OpenStore& open_store,
                                  const MasterGate& gate = {});

struct WorkerOptions {
  std::string master;               // as parse_address takes it
  StoreAddress store_override;      // --redis at the worker: used instead of what the master says
  std::chrono::seconds store_timeout{0};  // a store that is away is waited for so long
  std::uint64_t count = 1;          // worker actors in this process
  std::string name_prefix;          // host/pid
  WorkerConfig session;             // name is filled in
  FindDoor find_door = nullptr;     // see JobWorker::Options
  bool merges_part = false;         // of the weights, instead of training; then count is 1
  GateFiles gate = {};              // what proves to the master who comes
  std::string source = {};          // see CallTools
};

struct WorkerHooks {
  std::function<std::optional<std::string>()> poll_stop;
};

Result<void> run_worker(const WorkerOptions& options, const WorkerHooks& hooks,
                        const TrainerParts& parts, const OpenStore& open_store);

// "host:port" of any of the accepted address forms. Error: kUsage, naming the forms.
struct Address {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const Address&) const = default;
};
Result<Address> parse_address(const std::string& text);

// Whether a master lets us in at the address; `source`: see CallTools. Blocking, for seconds.
// Errors: those of Gate::call() and GateCredentials::load().
Result<void> probe_master(const Address& address, const GateFiles& files,
                          const std::string& source);

}  // namespace speedo
