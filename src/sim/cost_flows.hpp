#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <speedo/base/clock.hpp>

namespace speedo::sim {

// Work in progress that shares what it runs on: cores, links, the store's one thread. A flow is
// finished when all of its demands are; they advance together, as those of a transfer in chunks do,
// at the pace of the one that is worst off:
//   rate = min over its uses of share(resource) / seconds
// where `seconds` is what the use takes with the resource to itself. A resource gives equal shares.
//
// Deterministic: shares depend only on which flows there are. Times are those of the caller, which
// asks next() and then advances to it; thread safety: one thread.
class Flows {
 public:
  using ResourceId = std::size_t;
  using Done = std::function<void()>;

  // Serves one flow at a time, in turns too short to see: n flows get 1/n each.
  ResourceId add_server();
  // Cores: each thread gets speed(sum of all threads). `speed` is decreasing.
  ResourceId add_cores(std::function<double(double threads)> speed);
  // A server that is itself a thread on those cores while it has work.
  ResourceId add_server_on(ResourceId cores);

  struct Use {
    ResourceId resource = 0;
    double seconds = 0.0;   // alone
    double threads = 1.0;   // of cores: how many it keeps busy, a fraction if it also waits
  };
  // `seconds`: takes at least so long, whatever it uses. `done` is called by advance().
  void start(Instant now, double seconds, std::vector<Use> uses, Done done);

  bool idle() const { return flows_.empty(); }
  Instant now() const { return now_; }
  // When the next flow finishes if none is added before. Requires: not idle.
  Instant next() const { return next_; }
  // Moves time to `now`, not beyond next(), and calls `done` of what is finished by then, in the
  // order of their starts. They may start flows.
  void advance(Instant now);

  // Seconds during which the resource had work.
  double busy_seconds(ResourceId resource) const { return resources_[resource].busy_seconds; }

 private:
  struct Resource {
    std::function<double(double)> speed;  // of cores
    ResourceId cores = 0;                 // of a server on cores
    bool on_cores = false;
    double users = 0.0;                   // flows, or threads
    double busy_seconds = 0.0;
  };
  struct Flow {
    double own_seconds = 0.0;
    std::vector<Use> uses;
    double left = 1.0;   // part of the work
    double rate = 0.0;   // parts a second
    Done done;
  };

  void move_to(Instant now);
  void count_users();
  double share(const Use& use) const;
  void set_rates();

  std::vector<Resource> resources_;
  std::map<std::uint64_t, Flow> flows_;  // by order of start
  std::uint64_t next_flow_ = 0;
  Instant now_{0};
  Instant next_{0};
};

}  // namespace speedo::sim
