#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <utility>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/catch.hpp"

#include "actors/node.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"

namespace speedo::test {

// A socket connected to a port of this machine; -1 if nobody listens.
inline int connect_to(std::uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    return descriptor;
  }
  ::close(descriptor);
  return -1;
}

inline bool nobody_listens(std::uint16_t port) {
  const int descriptor = connect_to(port);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor < 0;
}

// Somebody who is let in as a worker and has no business with the job.
class Stranger {
 public:
  explicit Stranger(const GateFiles& files = {})
      : gate_(open_gate(GateRole::kWorker, files).value()), system_(config_),
        connector_(system_, *gate_), self_(system_) {}

  // The actor behind a port; a test that finds none fails.
  caf::actor reach(std::uint16_t port) {
    std::promise<Result<caf::actor>> promise;
    connector_.connect({"127.0.0.1", port},
                       [&](Result<caf::actor> actor) { promise.set_value(std::move(actor)); });
    const auto found = promise.get_future().get();
    REQUIRE(found);
    return *found;
  }
  // Sends a message that none of its kind may send: how the connection ends.
  template <class... Parts>
  caf::error send_until_cut(std::uint16_t port, Parts... parts) {
    const caf::actor actor = reach(port);
    self_->monitor(actor);
    self_->send(actor, parts...);
    caf::error reason;
    self_->receive([&](const caf::down_msg& message) { reason = message.reason; });
    return reason;
  }

 private:
  const std::unique_ptr<Gate> gate_;
  ActorConfig config_;
  caf::actor_system system_;
  Connector connector_;
  caf::scoped_actor self_;
};

}  // namespace speedo::test
