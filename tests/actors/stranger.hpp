#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/catch.hpp"

#include "actors/actor_base.hpp"
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

class PretendedMaster : public ActorBase {
 public:
  PretendedMaster(caf::actor_config& config, std::function<void(const caf::actor&)> on_hello)
      : ActorBase(config), on_hello_(std::move(on_hello)) {}

 protected:
  caf::behavior make_behavior() override {
    return {[this](const HelloMessage&) {
      on_hello_(caf::actor_cast<caf::actor>(current_sender()));
    }};
  }

 private:
  const std::function<void(const caf::actor&)> on_hello_;
};

// Somebody who speaks CAF's protocol and has no business with the job.
class Stranger {
 public:
  Stranger() : system_(config_), self_(system_) {}

  // The actor behind a port; a test that finds none fails.
  caf::actor reach(std::uint16_t port) {
    const auto found = system_.middleman().remote_actor("127.0.0.1", port);
    REQUIRE(found);
    return *found;
  }
  // Returns when the actor has ended.
  void end(const caf::actor& actor, const caf::error& reason) {
    self_->monitor(actor);
    self_->send(actor, caf::exit_msg{self_->address(), reason});
    self_->receive([](const caf::down_msg&) {});
  }

  // A master that welcomes nobody: it does something with each worker that connects. Gives its
  // port.
  std::uint16_t pretend_master(std::function<void(const caf::actor& worker)> on_hello) {
    const auto master = system_.spawn<PretendedMaster>(std::move(on_hello));
    masters_.push_back(master);
    const auto port = publish(system_, master, "127.0.0.1", 0);
    REQUIRE(port);
    return *port;
  }
  ~Stranger() {
    for (const caf::actor& master : masters_) {
      caf::anon_send_exit(master, caf::exit_reason::user_shutdown);
    }
  }

 private:
  ActorConfig config_;
  caf::actor_system system_;
  caf::scoped_actor self_;
  std::vector<caf::actor> masters_;
};

}  // namespace speedo::test
