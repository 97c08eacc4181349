#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/train/update.hpp>

#include "sim/cost_cluster.hpp"
#include "sim/cost_flows.hpp"
#include "sim/event_queue.hpp"

namespace speedo::sim {

// Floats that travel for one run of a stage.
struct Traffic {
  std::uint64_t worker_reads = 0, worker_writes = 0;
  std::uint64_t merge_reads = 0;             // of each contribution
  std::uint64_t merge_writes = 0;            // once a merge
  std::uint64_t merge_writes_back = 0;       // for each contribution
  std::uint64_t checkpoint = 0;              // beside the weights, once a merge on average
  bool reads_after_compute = false;          // the elastic kind meets the centre at its end
};
Traffic traffic_of(const UpdateSpec& update, const NetCosts& net);

// Seconds of a merge of so many contributions with nothing else going on.
double merge_seconds_alone(const ClusterCosts& cluster, const Traffic& traffic,
                           std::uint64_t contributions);

// What is asked of a cluster, and when it is done: workers, master and Redis of one host share its
// cores, everything that goes in or out of the store passes its host's link and its one thread, and
// the master handles one message and one merge at a time.
//
// Callbacks run from the queue, never within the call that asked. Same seed, same calls: same
// times. Requires: check(cluster) found nothing.
class CostModel {
 public:
  using Done = std::function<void()>;

  // `worker_hosts`: where each worker lives, as place_workers() gives it.
  CostModel(EventQueue& queue, ClusterCosts cluster, std::vector<std::size_t> worker_hosts,
            std::uint64_t seed);
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;

  void message_to_master(std::size_t worker, Done done);
  void message_to_worker(std::size_t worker, Done done);
  void compute(std::size_t worker, std::uint64_t steps, Done done);
  void read(std::size_t worker, std::uint64_t floats, Done done);
  void write(std::size_t worker, std::uint64_t floats, Done done);
  void merge(const Traffic& traffic, std::uint64_t contributions, Done done);
  // The master writes a record of its own.
  void publish(std::uint64_t floats, Done done);

  struct Usage {
    double store_busy_seconds = 0.0;   // its thread
    double master_busy_seconds = 0.0;  // merging, or handling a message
    double compute_seconds = 0.0;      // of all workers
    std::uint64_t bytes_in = 0, bytes_out = 0;  // of the store
  };
  Usage usage() const;
  const ClusterCosts& cluster() const { return cluster_; }

 private:
  struct HostResources {
    Flows::ResourceId cores = 0, in = 0, out = 0;
    std::uint64_t computing = 0;  // workers
  };

  const MachineCosts& machine_of(std::size_t host) const;
  void add_links(std::size_t from, std::size_t to, double bytes,
                 std::vector<Flows::Use>& uses) const;
  // `waiting`: seconds beside the transfer.
  void write_from(std::size_t host, std::uint64_t floats, double waiting, Done done);
  void start_client(std::size_t host, double alone, double bytes, std::vector<Flows::Use> uses,
                    Done done);
  void start(double seconds, std::vector<Flows::Use> uses, Done done);
  void schedule();
  static double sigma_of(const MachineCosts& machine);

  EventQueue& queue_;
  const ClusterCosts cluster_;
  const std::vector<Host> hosts_;
  const std::vector<std::size_t> worker_hosts_;
  std::vector<std::uint64_t> worker_threads_;
  std::size_t store_host_ = 0, master_host_ = 0;
  Flows flows_;
  std::vector<HostResources> resources_;
  Flows::ResourceId store_ = 0, merger_ = 0, control_ = 0;
  std::vector<Random> random_;  // of each worker
  std::uint64_t generation_ = 0;
  Usage usage_;
  // Queued timers look whether the model is still there.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace speedo::sim
