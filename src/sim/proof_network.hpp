#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

#include "sim/event_queue.hpp"
#include "sim/fault_ledger.hpp"
#include "sim/network.hpp"

namespace speedo::sim {

// A network as TCP shows it: late, in order between two nodes (unless told to mix), cut for a time;
// then what was sent waits, until the connection is given up.
class ProofNetwork : public Network {
 public:
  explicit ProofNetwork(std::uint64_t seed) : random_(seed) {}
  void attach(EventQueue& queue) { queue_ = &queue; }

  void carry(NodeId from, NodeId to, std::size_t bytes, std::function<void()> arrive) override;
  void carry_in_order(NodeId from, NodeId to, std::size_t bytes,
                      std::function<void()> arrive) override;

  Instant latency{0};
  bool mixes = false;         // keeps no order, and repeats messages
  struct Faults {
    double late = 0.0;    // chance of a message to be lost and sent again
    double twice = 0.0;   // to arrive twice
    double breaks = 0.0;  // to break its connection
    FaultMark mark;
  };
  Faults faults;
  std::function<void(NodeId, NodeId)> break_connection;

  // `mark` feels it when a message has to wait.
  void cut(NodeId from, NodeId to, const FaultMark& mark) { cuts_[{from, to}] = mark; }
  bool is_cut(NodeId from, NodeId to) const { return cuts_.contains({from, to}); }
  void heal(NodeId from, NodeId to);
  void heal_all();

 private:
  using Path = std::pair<NodeId, NodeId>;
  // False: it waits for the end of a cut, or its connection breaks.
  bool may_go(const Path& path, bool in_order, std::function<void()>& arrive);
  void send(const Path& path, bool in_order, std::function<void()> arrive);
  EventQueue* queue_ = nullptr;
  Random random_;
  std::map<Path, FaultMark> cuts_;
  struct Waiting {
    bool in_order;
    std::function<void()> arrive;
  };
  std::map<Path, std::vector<Waiting>> waiting_;
  std::map<Path, Instant> last_;
};

}  // namespace speedo::sim
