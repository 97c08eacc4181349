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
// Over several servers things are spread evenly, as chunks are, and move to or from all at once.
// Workers that share memory with the master ask no store: what they write is there at once.
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

  // Who moves records: the worker in that place, the master, or the merger of a shard.
  using Client = std::size_t;
  Client master() const { return worker_hosts_.size(); }
  Client merger_of(std::size_t shard) const { return worker_hosts_.size() + 1 + shard; }
  // A message between the master and a shard's merger.
  void message_to_merger(std::size_t shard, Done done);
  void message_from_merger(std::size_t shard, Done done);

  struct Load {
    std::uint64_t floats = 0;
    bool is_contribution = false;  // in the cluster's codec
    // Only what of them lies on this shard's server, and where to or from; none: all of them.
    std::optional<std::size_t> shard = std::nullopt;
    bool is_copy = false;          // on the next server
  };
  // The round trips before the first bytes of records, all asked for at once, are read.
  void open(Client client, std::uint64_t records, Done done);
  void read(Client client, const Load& load, Done done);
  void write(Client client, const Load& load, Done done);
  // The round trips after the last bytes of a record.
  void finish(Client client, Done done);

  // Whoever merges adds up so many floats of contributions, and does so many seconds of other work.
  void add(Client merger, std::uint64_t floats, double seconds, Done done);

  // Of all floats, what lies on that shard's server.
  double share_of(std::size_t shard) const { return shares_[shard]; }
  std::size_t shard_count() const { return cluster_.store.shards; }
  bool shares_memory(Client worker) const;
  bool all_share_memory() const;

  struct Usage {
    double store_busy_seconds = 0.0;    // the busiest server's thread
    double message_seconds = 0.0;       // the master handled messages
    double link_seconds = 0.0;          // of the busiest link, either way
    std::size_t link_host = 0;
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
  void move(Client client, Way way, const Load& load, Done done);
  double stored_bytes(const Load& load) const;
  double codec_seconds(const Load& load, Way way) const;
  std::vector<double> spread(const Load& load) const;
  void move_in_memory(Client client, double seconds, Done done);
  void round_trips(Client client, Way way, std::uint64_t records, double waiting, Done done);
  void use_server(std::size_t server, double seconds, std::vector<Flows::Use>& uses) const;
  void use_links(std::size_t from, std::size_t to, double bytes,
                 std::vector<Flows::Use>& uses) const;
  void add_uses(Client client, Way way, const Load& load, std::vector<Flows::Use>& uses) const;
  void start(double seconds, std::vector<Flows::Use> uses, Done done,
             Flows::Party party = std::nullopt);
  void schedule();

  EventQueue& queue_;
  const ClusterCosts cluster_;
  const std::vector<ClusterHost> hosts_;
  const std::vector<std::size_t> worker_hosts_;
  std::vector<std::uint64_t> worker_threads_;
  const std::vector<std::size_t> server_hosts_;
  const std::vector<double> shares_;    // of each server, of a record
  const CodecCosts codec_;
  std::size_t master_host_ = 0;
  Flows flows_;
  std::vector<HostResources> resources_;
  std::vector<Flows::ResourceId> servers_;
  Flows::ResourceId control_ = 0;
  std::vector<Line> in_, out_, adders_;  // of each client
  std::vector<Random> random_;  // of each worker
  std::uint64_t generation_ = 0;
  bool advancing_ = false;
  Usage usage_;
  // Queued timers look whether the model is still there.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace speedo::sim
