#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/factor_shape.hpp>

namespace speedo::sim {

// Beyond these a step's duration is no duration any more, but a slip of the pen.
constexpr double kStepSpreadMax = 10.0;
constexpr double kStepSecondsMin = 1e-9;
constexpr std::int64_t kFactorSideMax = 1 << 30;  // rows, height and width of a product

// Machines that are alike.
struct MachineCosts {
  std::string name;
  std::uint64_t count = 1;
  double cores = 1.0;
  // Seconds of one mini-batch's forward, backward and update with 1, 2, ... threads of its own and
  // nothing else on the machine.
  std::vector<double> step_seconds = {1.0};
  double step_spread = 0.0;      // standard deviation of a step over its mean
  std::uint64_t threads = 0;     // of a worker; 0: the cores divided by the workers of the machine
  // Speed of each thread when 1, 2, ... are busy, of one that is alone. Empty: 1 up to `cores`.
  // Beyond the list, and beyond the cores, busy threads share.
  std::vector<double> sharing;
  // Of that speed, while some of its threads compute and others exchange.
  double mixed = 1.0;
  std::uint64_t workers_max = 0;  // workers that it takes; 0: any number
  // Of its link, each way; 0: infinite. Processes of one machine do not use the link.
  double bytes_per_second = 0.0;
};

// Weights that are used first and whose gradients are final at one moment of a mini-batch: a
// layer's.
struct BucketCosts {
  std::uint64_t parameters = 0;
  double needed = 0.0, final = 1.0;  // parts of the mini-batch's time
  // The product that the gradient of most of them is; no rows: it is none. `product`: the time to
  // make it, as a part of the mini-batch's.
  FactorShape factors = {};
  double product = 0.0;
};

// Another batch than the one described.
struct BatchCosts {
  std::uint64_t batch = 1;
  double times = 1.0;    // its mini-batch takes so many times as long
};

struct NetCosts {
  std::uint64_t parameters = 1;
  std::uint64_t batch = 1;       // images of a mini-batch, of each worker
  std::uint64_t histories = 1;   // of the update rule; averaged updaters travel too
  // In the net's order; together all parameters. Empty: one bucket, so nothing overlaps.
  std::vector<BucketCosts> buckets = {};
  double update = 0.0;           // the rule's part of a mini-batch's time
  bool clips = false;            // by the norm of the whole gradient: the rule waits for all of it
  std::vector<BatchCosts> batches = {};  // that may be chosen beside `batch`
};

struct NetworkCosts {
  double latency_seconds = 0.0;          // one message or request, one way, between machines
  double local_latency_seconds = 0.0;    // the same inside one machine
};

// Servers that serve everybody with one thread each.
struct StoreCosts {
  std::string machine;            // of a single server
  // Servers that records are spread over, chunk by chunk; the master merges.
  std::uint64_t servers = 1;
  // As many servers instead, each with a merger beside it for its part of the weights; 0: none.
  std::uint64_t shards = 0;
  // Where several servers are: one on each machine of these names, then a second one on each, ...
  // Empty: on all machines, in the order described.
  std::vector<std::string> machines = {};
  bool copies = true;             // of a shard's part, on the next server
  // Of one client alone: the round trips of a record, and its bytes.
  double record_seconds = 0.0;
  double read_bytes_per_second = 0.0;    // 0: infinite
  double write_bytes_per_second = 0.0;
  // What its one thread is busy with: all clients together are not served faster than this.
  double busy_record_seconds = 0.0;
  double busy_read_bytes_per_second = 0.0;   // 0: as one client alone
  double busy_write_bytes_per_second = 0.0;
};

// The merger takes one merge at a time.
struct MasterCosts {
  std::string machine;
  double merge_seconds = 0.0;            // fixed, per merge
  double merge_bytes_per_second = 0.0;   // of contributions merged, store aside; 0: infinite
  double rule_seconds = 0.0;             // the solver's rule on all gradients, where it is its
  double product_seconds = 0.0;          // all gradients that are products, of one worker's factors
  double message_seconds = 0.0;          // each message that it handles, one at a time
  bool merges_ahead = true;              // of order, in rounds, see Merger::expect()
};

// What a worker's process does beside computing.
struct WorkerCosts {
  double run_seconds = 0.0;              // fixed, per run
  // Per run whose exchange begins while another worker of its machine computes: its processes, the
  // store's and the master's wait for processors now and then.
  double crowded_seconds = 0.0;
  double client_bytes_per_second = 0.0;  // CPU of a client of the store; 0: none
  std::string codec = "none";            // of what it contributes by the store, as --codec says it
  // Whether workers of the master's machine exchange in memory. None: nothing is said of it.
  std::optional<bool> shares_memory = std::nullopt;
  double memory_bytes_per_second = 0.0;  // at which they read the weights there; 0: infinite
};

// A codec on this net. Rates are those of one core, of floats; 0: infinite.
struct CodecCosts {
  std::string name;      // as --codec takes it
  double ratio = 1.0;    // so many times fewer bytes than the floats
  double encode_bytes_per_second = 0.0;  // with what it left out before
  double decode_bytes_per_second = 0.0;
};

// A cluster as durations. What a plan is computed from.
struct ClusterCosts {
  std::string title;
  NetCosts net;
  std::vector<MachineCosts> machines;
  NetworkCosts network;
  StoreCosts store;
  MasterCosts master;
  WorkerCosts worker;
  std::vector<CodecCosts> codecs = {};  // that are known, others have their usual ratio
};

// Refuses what cannot be computed with, naming the field. Error: kConfig.
Result<void> check(const ClusterCosts& cluster);

// One machine of those described, numbered over all kinds and counts.
struct ClusterHost {
  std::size_t kind = 0;          // index of ClusterCosts::machines
  std::string name;              // NAME, or NAME-k of several
};
std::vector<ClusterHost> hosts_of(const ClusterCosts& cluster);
// The first host of that kind. Requires: there is one.
std::size_t host_of(const ClusterCosts& cluster, const std::string& machine);

// Hosts of `workers` workers: one each in the order described, then a second one each, ...
// Error: kConfig if the machines do not take so many.
Result<std::vector<std::size_t>> place_workers(const ClusterCosts& cluster, std::uint64_t workers);

// Threads that each of `workers` workers of such a machine computes with, and seconds of its step
// with nobody else there.
std::uint64_t threads_of(const MachineCosts& machine, std::uint64_t workers);
double step_seconds_of(const MachineCosts& machine, std::uint64_t threads);
// Speed of each thread while `busy` threads want a core, in the units of `sharing`.
double thread_speed(const MachineCosts& machine, double busy);

// Images a second of one worker of the first machine without cluster or store: what speed-ups are
// relative to.
double sequential_images_per_second(const ClusterCosts& cluster);

}  // namespace speedo::sim
