#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// Bytes to and from one server, over a connected socket that does not block.
// After an error it only repeats that. Errors: kUnavailable, a connection that broke; those of
// TlsWire. Thread safety: one thread at a time.
class RedisWire {
 public:
  virtual ~RedisWire() = default;

  // Neither waits. The bytes that are taken; nothing if the server takes no more: then receive()
  // finds why, what it has said before it closed first.
  virtual Result<std::optional<std::size_t>> send(std::span<const iovec> bytes) = 0;
  // The bytes that have come; 0: none are there.
  virtual Result<std::size_t> receive(std::span<const iovec> into) = 0;
  // There are bytes for receive() that the socket does not show.
  virtual bool holds() const { return false; }
  // send() has taken bytes that the socket has not: call it again, if only with nothing.
  virtual bool owes() const { return false; }

  int socket() const { return socket_.get(); }

 protected:
  explicit RedisWire(int socket) : socket_(socket) {}

 private:
  const Descriptor socket_;
};

// In clear. Takes the socket over.
std::unique_ptr<RedisWire> open_clear_wire(int socket);

// How long a server is waited for, whatever it says little by little.
struct RedisPatience {
  RedisPatience(std::chrono::milliseconds time, std::function<bool()> stop_in)
      : end(steady_clock().now() + time), stop(std::move(stop_in)) {}

  Instant end;
  std::function<bool()> stop;  // not to be waited for any longer
};

// The same as the methods of a wire, but they wait for the other side: kTimeout at the end of
// `patience`, kUnavailable when it is stopped. What cannot be sent because the server has closed is
// no error: see receive().
Result<void> send_all(RedisWire& wire, std::span<iovec> bytes, const RedisPatience& patience);
// One byte or more.
Result<std::size_t> await_bytes(RedisWire& wire, std::span<char> into,
                                const RedisPatience& patience);

// For those who have a socket: as above, without TLS.
Result<std::optional<std::size_t>> send_now(int socket, std::span<const iovec> bytes);
Result<std::size_t> receive_now(int socket, std::span<const iovec> into);
// Until the socket is ready for these events of poll().
Result<void> await_socket(int socket, short events, const RedisPatience& patience);

}  // namespace speedo
