#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <sys/socket.h>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// The system calls of gates. Sockets do not block and are closed in programs that are started.

// A socket that listens, and its port. Error: kUnavailable.
struct ListeningSocket {
  std::unique_ptr<Descriptor> socket;
  std::uint16_t port = 0;
};
Result<ListeningSocket> listen_at(const std::string& bind, std::uint16_t port);

// AF_INET, AF_INET6; AF_UNSPEC if it is no address in numbers.
int family_of(const std::string& address);
// That a call comes from the address `source`, in numbers and of the socket's family. Error:
// kUnavailable.
Result<void> call_from(int socket, const std::string& source);

// For few small messages: sent at once, and what is lost again every second or so, so that a bad
// link does not look like a dead one. Before Linux 6.15 the pauses still grow, from the seventh on.
void send_at_once(int socket);

// Two ends of a connection within this process. Error: kFull.
struct SocketPair {
  std::unique_ptr<Descriptor> gate, caf;
};
Result<SocketPair> make_socket_pair();

// "10.0.0.7:4444" and "10.0.0.7", for messages and limits.
struct PeerAddress {
  std::string text, host;
};
PeerAddress address_of(const sockaddr_storage& address);

}  // namespace speedo
