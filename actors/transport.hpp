#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/compat.hpp"
#include "actors/node.hpp"
#include "gate/gate.hpp"
#include "train/job/job_thread.hpp"

namespace speedo {

// The gate of a master, a worker or one who watches a job: protocol, application and the messages
// that each kind of peer may send. Errors: those of Gate::create().
Result<std::unique_ptr<Gate>> open_gate(GateRole role, const GateFiles& files, bool warns = false);

// Has CAF's network thread serve a gate's sockets, as what comes in there goes on to CAF: until the
// object ends, before the system does. Where no descriptor is left, the gate's own thread does.
class NetworkService {
 public:
  NetworkService(caf::actor_system& system, Gate& gate);
  ~NetworkService();
  NetworkService(const NetworkService&) = delete;
  NetworkService& operator=(const NetworkService&) = delete;

 private:
  Gate& gate_;
  std::optional<compat::NetworkEvents> events_;
};

// An actor that is reachable through a gate's port, until the object ends, before the system does.
class Publication {
 public:
  // bind:port, 0: any free one. Blocking. Error: kUnavailable, naming the port and the remedy.
  static Result<std::unique_ptr<Publication>> create(caf::actor_system& system, Gate& gate,
                                                     const caf::actor& whom,
                                                     const std::string& bind, std::uint16_t port);
  ~Publication() { gate_.stop_listening(); }
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  Publication(Gate& gate, std::uint16_t port) : gate_(gate), port_(port) {}

  Gate& gate_;
  const std::uint16_t port_;
};

// Connects to published actors on a thread of its own, as both resolving a name and connecting
// block. Workers of one process share the connection to their master.
// Thread safety: all methods from any thread.
class Connector {
 public:
  Connector(caf::actor_system& system, Gate& gate, CallTools tools = {})
      : system_(system), gate_(gate), tools_(std::move(tools)),
        thread_(real_platform(), "connector") {}
  // Breaks off attempts under way; their callbacks are still called.
  ~Connector() { stop_ = true; }

  // Errors of `done`, which runs on the connector's thread: those of Gate::call(); kInternal if the
  // attempt throws.
  void connect(Address address, std::function<void(Result<caf::actor>)> done);

 private:
  // What stands, and who is at its end.
  struct Standing {
    Address address;
    std::shared_ptr<const std::atomic<bool>> alive;
    caf::actor found;
  };

  bool stands(const Address& address) const;
  Result<caf::actor> connect_now(const Address& address);
  Result<caf::actor> ask_network(const Address& address, GateCall call);

  caf::actor_system& system_;
  Gate& gate_;
  const CallTools tools_;
  std::atomic<bool> stop_{false};
  std::optional<Standing> standing_;  // of the thread
  JobThread thread_;  // last: its work uses the others
};

}  // namespace speedo
