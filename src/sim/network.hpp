#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <speedo/base/ids.hpp>

namespace speedo::sim {

// A node of the cluster, numbered in the order of being started.
using NodeId = Id<struct NodeTag>;

class Network {
 public:
  virtual ~Network() = default;
  // Carries a message; `arrive` is called when it is there. Between two nodes messages arrive in
  // their order unless the network is one that mixes them; each arrives late, never, or twice.
  virtual void carry(NodeId from, NodeId to, std::size_t bytes, std::function<void()> arrive) = 0;
  // The same of what counts on its order and on arriving once, whatever the network is.
  virtual void carry_in_order(NodeId from, NodeId to, std::size_t bytes,
                              std::function<void()> arrive) {
    carry(from, to, bytes, std::move(arrive));
  }
};

}  // namespace speedo::sim
