#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/descriptor.hpp"
#include "gate/gate_link.hpp"
#include "gate/gate_socket.hpp"

namespace speedo {

// A GateLink and its two sockets. Thread safety: one thread.
class GateConnection {
 public:
  GateConnection(std::unique_ptr<Descriptor> network, GateLink link, PeerAddress address)
      : network_(std::move(network)), link_(std::move(link)), address_(std::move(address)) {}

  // Moves what can be moved without waiting; what has come is looked for at these ends alone. True
  // at its end: both sockets may be closed.
  enum class Ends { kNetwork, kLocal, kBoth };
  bool service(Instant now, Ends ends = Ends::kBoth);
  // The other end of `local` is CAF's.
  void give_local(std::unique_ptr<Descriptor> local) { local_ = std::move(local); }

  int network() const { return network_->get(); }
  int local() const { return local_ ? local_->get() : -1; }
  bool has_local() const { return local_ != nullptr; }
  // What epoll or poll is to wait for: bits of EPOLLIN and EPOLLOUT, which are those of POLLIN and
  // POLLOUT.
  std::uint32_t network_interest();
  std::uint32_t local_interest();

  // When service() is due though nothing happens.
  std::optional<Instant> deadline() const;

  GateLink& link() { return link_; }
  const PeerAddress& address() const { return address_; }

 private:
  bool read_network(Instant now);
  bool read_local(Instant now);
  // Whether the peer takes too little of what is held for it, for too long.
  bool is_stalled(bool was_full, Instant now);
  // Writes from the front of `buffer`; false if the other side is gone.
  static bool write_some(int socket, std::string& buffer);

  const std::unique_ptr<Descriptor> network_;
  std::unique_ptr<Descriptor> local_;
  GateLink link_;
  const PeerAddress address_;
  bool said_all_ = false;  // nothing more is sent to the network
  bool network_gone_ = false;
  // What is to be sent is at its limit, again and again without kGateRelief between.
  std::optional<Instant> full_since_;
  Instant full_at_{0};  // the last time
};

}  // namespace speedo
