#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/base/clock.hpp>

namespace speedo::sim {

// Work in progress that shares what it runs on: cores, links, the store's one thread. A flow is
// finished when all of its demands are; they advance together, as those of a transfer in chunks do.
// Alone it takes as long as the longest of them, and keeps each resource busy for a part of that
// time. Where a resource cannot give all of them their parts, it gives equal ones; what a flow does
// not take, because it is held up elsewhere, goes to the others (max-min fairness). Flows of one
// party have one share together.
//
// Deterministic: shares depend only on which flows there are. Times are those of the caller, which
// asks next() and then advances to it; thread safety: one thread.
class Flows {
 public:
  using ResourceId = std::size_t;
  using Done = std::function<void()>;

  // Does one thing at a time, in turns too short to see.
  ResourceId add_server();
  // The two ways of a full-duplex link: servers that either_busy_seconds() takes together.
  void pair_up(ResourceId way, ResourceId other);
  // So many cores. `speed`: of each thread when so many are busy, of one that is alone; decreasing.
  // `mixed`: of that speed, while some compute and others do not.
  ResourceId add_cores(double count, std::function<double(double threads)> speed,
                       double mixed = 1.0);

  struct Use {
    ResourceId resource = 0;
    double seconds = 0.0;   // of it alone; of cores: of each thread
    double threads = 1.0;   // of cores
    bool computes = false;
  };
  // Whose a flow is. None: a party of its own.
  using Party = std::optional<std::size_t>;
  // `seconds`: takes at least so long, whatever it uses. `done` is called by advance().
  void start(Instant now, double seconds, std::vector<Use> uses, Done done,
             Party party = std::nullopt);

  bool idle() const { return flows_.empty(); }
  Instant now() const { return now_; }
  // When the next flow finishes if none is added before. Requires: not idle.
  Instant next() {
    set_rates();
    return next_;
  }
  // Moves time to `now`, not beyond next(), and calls `done` of what is finished by then, in the
  // order of their starts. They may start flows.
  void advance(Instant now);

  // What the resource has done so far, in seconds of it alone.
  double busy_seconds(ResourceId resource) const { return resources_[resource].busy_seconds; }
  // The same of whichever way of the link was busier at each time. Requires: it has another one.
  double either_busy_seconds(ResourceId way) const {
    return resources_[std::min(way, *resources_[way].other_way)].either_busy_seconds;
  }

 private:
  struct Flow;
  // What a flow wants of a resource.
  struct Claim {
    Flow* flow = nullptr;
    double share = 0.0;    // of the flow's time, alone
    double threads = 1.0;  // of cores
    double speed = 1.0;    // of cores: of each thread, alone there
    bool computes = false;
    double wanted = 0.0;  // of its capacity, as fast as alone, with the others that there are
  };
  struct Resource {
    double count = 1.0;                   // cores
    double mixed = 1.0;
    std::function<double(double)> speed;  // of cores
    std::optional<ResourceId> other_way;
    std::vector<Claim> claims;         // in the order of the flows' starts
    double busy_rate = 0.0;            // seconds of it, of itself alone, in each second
    double busy_seconds = 0.0;         // of it alone
    double either_busy_seconds = 0.0;  // of both ways: in the first of the two
    // While shares are dealt:
    double capacity = 1.0;  // cores, or the server
  };
  struct Flow {
    double alone_seconds = 0.0;
    std::vector<ResourceId> resources;  // ascending
    double left = 1.0;                  // part of the work
    double rate = 0.0;                  // parts a second
    Done done;
    double* members = nullptr;  // how many flows its party has, if it has one
    // While shares are dealt, speeds of which 1 is that of a flow alone:
    double widest = 0.0;      // of what it wants of each resource, the largest part
    double full_speed = 1.0;  // with all that it wants
    double full_level = 0.0;  // of a party's share, that gives it
    double speed = 0.0;
    bool is_dealt = false;
  };

  void claim(Flow& flow, const Use& use);
  void release(Flow& flow);
  void move_to(Instant now);
  void begin_dealing();
  void size_up(Resource& cores) const;
  double speed_at(const Flow& flow, double level) const;
  double level_that_fills(const Resource& resource);
  void deal_shares();
  void set_rates();

  std::vector<Resource> resources_;
  std::vector<std::unique_ptr<Flow>> flows_;  // in the order of their starts
  std::map<std::size_t, double> members_;     // flows of each party
  bool is_dealt_ = true;                      // shares are those of the flows that there are
  std::vector<ResourceId> claimed_;           // that flows use, ascending
  // Kept for their memory:
  std::vector<std::pair<double, double>> ends_;       // of level_that_fills()
  std::vector<std::pair<double, ResourceId>> fills_;  // of deal_shares()
  Instant now_{0};
  Instant next_{0};
};

}  // namespace speedo::sim
