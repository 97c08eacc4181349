#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "actors/compat.hpp"
#include "actors/endpoint_probe.hpp"
#include "actors/node.hpp"
#include "train/job/job_thread.hpp"

namespace speedo {

// Makes `whom` reachable at bind:port (0: any free port); returns the port. Blocking.
// Error: kUnavailable, naming the port and the remedy.
Result<std::uint16_t> publish(caf::actor_system& system, const caf::actor& whom,
                              const std::string& bind, std::uint16_t port);

// Connects to published actors on a thread of its own, as both resolving a name and connecting
// block. Thread safety: all methods from any thread.
class Connector {
 public:
  explicit Connector(caf::actor_system& system, ProbeTools tools = {})
      : system_(system), tools_(std::move(tools)), thread_(real_platform(), "connector") {}
  // Breaks off attempts under way; their callbacks are still called.
  ~Connector() { stop_ = true; }

  // Errors of `done`, which runs on the connector's thread: kUnavailable; kMismatch if another
  // version of the protocol is spoken there; kInternal if the attempt throws.
  void connect(Address address, std::function<void(Result<caf::actor>)> done);

 private:
  Result<caf::actor> connect_now(const Address& address);
  Result<caf::actor> ask_network(const Address& address, const Address& found_at);

  caf::actor_system& system_;
  const ProbeTools tools_;
  std::atomic<bool> stop_{false};
  JobThread thread_;  // last: its work uses the others
};

}  // namespace speedo
