#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"
#include "base/name_lookup.hpp"
#include "gate/credentials.hpp"
#include "gate/gate_audit.hpp"
#include "gate/gate_names.hpp"

namespace speedo {

class GateConnection;

struct GateOptions {
  GateRole role = GateRole::kWorker;  // ours
  GateFiles files;                    // none: GateMode::kOpen
  std::uint32_t protocol = 0;         // of what is spoken behind the gate
  std::string application;            // that CAF's handshake names
  // The types of messages that a peer of this role may send to us.
  std::function<std::vector<std::string>(GateRole peer)> messages;
  // Say every minute that the port is open to everybody.
  bool warns = false;
  // See Gate::bear_silence().
  std::chrono::milliseconds silence{0};
};

// A connection that was made: CAF's end of it, and whether it still stands.
struct GateCall {
  std::unique_ptr<Descriptor> caf;
  std::shared_ptr<const std::atomic<bool>> alive;
};

// Of the world that a call asks.
struct CallTools {
  const Clock* clock = &steady_clock();
  LookUp look_up = ask_system;
  std::string source = {};  // the call comes from this address, in numbers; "": as the routes say
};

// The way in and out of a process: it owns every socket of the network, and gives CAF one end of a
// pair of sockets for each peer that it let in. So CAF listens nowhere, and nobody unknown reaches
// it. What peers say goes through GateLink, on one thread of the gate's own unless it is lent.
//
// Files of credentials that change are read again within two seconds; connections that stand stay.
// A peer that is turned away is counted and, if there are not many, gets a line in the log.
// Thread safety: all methods from any thread.
class Gate {
 public:
  // Errors: those of GateCredentials::load(); kFull where there is no descriptor left.
  static Result<std::unique_ptr<Gate>> create(GateOptions options);
  // Waits until what CAF has said has left, for kGateFarewell at most. Requires: CAF's ends are
  // closed, or will be soon.
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Lets peers in at bind:port (0: any free one); returns the port. `arrive` gets CAF's end of each
  // one's connection, on the gate's thread or in serve(). Requires: not called before. Error:
  // kUnavailable.
  using Arrive = std::function<void(std::unique_ptr<Descriptor> caf)>;
  Result<std::uint16_t> listen(const std::string& bind, std::uint16_t port, Arrive arrive);
  // When it returns, `arrive` is not called any more and the port is closed.
  void stop_listening();

  // Connects to another gate, which is a master's. Blocking, for kConnectionTimeout besides looking
  // up the name; `stop` breaks it off. Errors: kUnavailable, saying what was found instead;
  // kRefused if one side does not let the other in, kMismatch if it is of another version: both
  // only of a peer that says so twice.
  Result<GateCall> call(const std::string& host, std::uint16_t port, const std::atomic<bool>& stop,
                        const CallTools& tools = {});
  // Whether this error of call() says that nobody listens there: no process, not a slow one.
  static bool found_nobody(const Error& error);

  // Of all connections: a peer that was let in and says nothing for so long is given up, with a
  // line in the log; 0: none is. A process that was stopped meanwhile first hears what has come.
  void bear_silence(std::chrono::milliseconds silence);

  // Who has a thread that waits for other sockets too can serve the gate's on it, so that nothing
  // between them passes from thread to thread: from lend() on serve() is called there whenever
  // events(), a descriptor for epoll, can be read. The gate's own thread sees to deadlines
  // meanwhile. From take_back() on, which waits for a serve() under way, it does all again; so that
  // must be before the end.
  int events() const;
  void lend();
  void serve();
  void take_back();

  GateCounts counts() const;

 private:
  class Loop;
  explicit Gate(std::unique_ptr<Loop> loop);
  Result<GateCall> hand_over(std::unique_ptr<GateConnection> made);
  const std::unique_ptr<Loop> loop_;
};

}  // namespace speedo
