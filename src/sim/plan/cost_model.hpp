#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <speedo/base/random.hpp>

#include "sim/plan/cost_cluster.hpp"
#include "sim/plan/cost_flows.hpp"
#include "sim/event_queue.hpp"

namespace speedo::sim {

// What is asked of a cluster, and when it is done: workers, master and Redis of one host share its
// cores, everything that goes in or out of the store passes its host's link and its one thread, and
// the master handles one message at a time. A client of the store moves one thing in and one out at
// a time, in the order in which they are asked for; both together are served as often as another's.
//
// Assumes: whoever wants a core gets an equal share of them, whatever it is and its priority; what
// the caches and the memory give is what MachineCosts::sharing and ::mixed say, for whatever runs.
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

  // What a worker's next mini-batch takes if nothing else is there, with all its threads.
  double draw_step_seconds(std::size_t worker);
  void compute(std::size_t worker, double seconds, Done done);

  // Who moves records: the worker in that place, or the master.
  using Client = std::size_t;
  Client master() const { return worker_hosts_.size(); }
  // The round trips before the first bytes of records, all asked for at once, are read.
  void open(Client client, std::uint64_t records, Done done);
  void read(Client client, std::uint64_t floats, Done done);
  void write(Client client, std::uint64_t floats, Done done);
  // The round trips after the last bytes of a record.
  void finish(Client client, Done done);

  // The master adds up so many floats of contributions, and does so many seconds of other work.
  void add(std::uint64_t floats, double seconds, Done done);

  struct Usage {
    double store_busy_seconds = 0.0;    // its thread
    double message_seconds = 0.0;       // the master handled messages
    double compute_seconds = 0.0;       // of all workers, alone
    std::uint64_t bytes_in = 0, bytes_out = 0;  // of the store
  };
  Usage usage() const;
  const ClusterCosts& cluster() const { return cluster_; }

 private:
  struct HostResources {
    Flows::ResourceId cores = 0, in = 0, out = 0;
    std::uint64_t computing = 0;  // workers
  };
  // Work of which one thing is done at a time.
  struct Line {
    std::deque<std::function<void()>> waiting;
    bool busy = false;
  };
  enum class Way { kToStore, kFromStore };

  const MachineCosts& machine_of(std::size_t host) const;
  std::size_t host_of_client(Client client) const;
  Line& line_of(Client client, Way way);
  void queue_up(Line& line, std::function<void(Done)> work, Done done);
  void start_next(Line& line);
  void move(Client client, Way way, std::uint64_t floats, Done done);
  void round_trips(Client client, Way way, std::uint64_t records, double waiting, Done done);
  void use_store(double seconds, std::vector<Flows::Use>& uses) const;
  void use_links(std::size_t from, std::size_t to, double bytes,
                 std::vector<Flows::Use>& uses) const;
  void start(double seconds, std::vector<Flows::Use> uses, Done done,
             Flows::Party party = std::nullopt);
  void schedule();

  EventQueue& queue_;
  const ClusterCosts cluster_;
  const std::vector<Host> hosts_;
  const std::vector<std::size_t> worker_hosts_;
  std::vector<std::uint64_t> worker_threads_;
  std::size_t store_host_ = 0, master_host_ = 0;
  Flows flows_;
  std::vector<HostResources> resources_;
  Flows::ResourceId store_ = 0, control_ = 0;
  std::vector<Line> in_, out_;  // of each client
  Line adder_;
  std::vector<Random> random_;  // of each worker
  std::uint64_t generation_ = 0;
  bool advancing_ = false;
  Usage usage_;
  // Queued timers look whether the model is still there.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace speedo::sim
