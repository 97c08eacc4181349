#pragma once

#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/batch_sink.hpp>
#include <speedo/store/redis_store.hpp>
#include <speedo/train/trainer.hpp>

#include "base/output_root.hpp"
#include "cli/compute_options.hpp"
#include "cli/flags/gate_flags.hpp"
#include "gate/credentials.hpp"
#include "measure/memory_guard.hpp"
#include "train/job/open_store.hpp"

// The implementations behind the interfaces: the only place that picks them.
namespace speedo {

TrainerParts trainer_parts(const ComputeOptions& options = {});

// The same for nets that are planned and not run: nothing is tried for them on a GPU.
ComputeOptions for_plans(ComputeOptions options);
// Of a process that does not compute there itself: in the end it does without the GPU.
ComputeOptions for_plans_of_others(ComputeOptions options);

// The memory of a GPU; not known where there is none of that number.
MemoryLimit gpu_memory(int index);
// What processes that compute so are held to, on the host and where they compute.
MemoryPolicy memory_policy(const ComputeOptions& options, bool force);

// Where nets of this process may write. A job's nets have none: a net that came over the network
// names no file to be written.
std::unique_ptr<SinkFactory> make_sinks();

// --output-root: null if it is empty. Errors: as OutputRoot::confine().
Result<std::unique_ptr<OutputRoot>> confine_outputs(const std::string& folder);

// How stores are reached. As a RedisOptions has it; the limit is of all of them together.
struct StoreTerms {
  RedisCredentials credentials = {};
  std::shared_ptr<TrafficLimit> limit = nullptr;
  std::string source = {};
  RedisTlsFiles tls = {};
  bool may_be_open = false;
  int opening_attempts_max = 0;
};

// The servers at an address, as these terms reach them. Error: kUsage.
Result<std::vector<RedisOptions>> redis_servers(const StoreAddress& address,
                                                const StoreTerms& terms);

// Opens the job's store on the Redis server at an address; without credentials on one that asks for
// none. Errors: as open_redis_store.
OpenStore store_opener(const StoreTerms& terms = {});

GateFiles gate_files(const GateFlags& flags);

}  // namespace speedo
