#include "store/redis/redis_wire.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace speedo {
namespace {

// How often a wait looks whether it is to stop.
constexpr std::chrono::milliseconds kStopLook{50};

bool is_network(int socket) {
  int family = 0;
  socklen_t size = sizeof(family);
  return ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family != AF_UNIX;
}

class ClearWire final : public RedisWire {
 public:
  explicit ClearWire(int socket) : RedisWire(socket) {}
  Result<std::optional<std::size_t>> send(std::span<const iovec> bytes) override {
    return send_now(socket(), bytes);
  }
  Result<std::size_t> receive(std::span<const iovec> into) override {
    auto received = receive_now(socket(), into);
    if (received && *received > 0) has_answered_ = true;
    if (received || has_answered_ || !is_network(socket())) return received;
    return Error{received.error().code,
                 received.error().message +
                     ": if this is the server's port for TLS (tls-port), write rediss:// "
                     "(rediss-sentinel://, rediss-cluster://)"};
  }

 private:
  bool has_answered_ = false;
};

msghdr message_of(std::span<const iovec> vectors) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors.data());  // which nothing changes
  message.msg_iovlen = vectors.size();
  return message;
}

// Takes `sent` bytes off the front.
void advance(std::span<iovec>& vectors, std::size_t sent) {
  while (!vectors.empty() && sent >= vectors.front().iov_len) {
    sent -= vectors.front().iov_len;
    vectors = vectors.subspan(1);
  }
  if (vectors.empty()) return;
  vectors.front().iov_base = static_cast<char*>(vectors.front().iov_base) + sent;
  vectors.front().iov_len -= sent;
}

}  // namespace

std::unique_ptr<RedisWire> open_clear_wire(int socket) {
  return std::make_unique<ClearWire>(socket);
}

Result<std::optional<std::size_t>> send_now(int socket, std::span<const iovec> bytes) {
  const msghdr message = message_of(bytes);
  const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return std::optional(static_cast<std::size_t>(sent));
  if (errno == EAGAIN || errno == EINTR) return std::optional<std::size_t>(0);
  if (errno == EPIPE || errno == ECONNRESET) return std::optional<std::size_t>();
  return Error{ErrorCode::kUnavailable, std::strerror(errno)};
}

Result<std::size_t> receive_now(int socket, std::span<const iovec> into) {
  msghdr message = message_of(into);
  const ssize_t received = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (received > 0) return static_cast<std::size_t>(received);
  if (received == 0) return Error{ErrorCode::kUnavailable, "the server closed the connection"};
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return Error{ErrorCode::kUnavailable, std::strerror(errno)};
}

Result<void> await_socket(int socket, short events, const RedisPatience& patience) {
  pollfd polled{socket, events, 0};
  while (!patience.stop()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(patience.end - steady_clock().now());
    if (left.count() <= 0) {
      return Error{ErrorCode::kTimeout,
                   "no answer in time: is the server overloaded, stopped or behind a firewall?"};
    }
    if (::poll(&polled, 1, static_cast<int>(std::min(left, kStopLook).count())) > 0) return {};
  }
  return Error{ErrorCode::kUnavailable, "not waited for any longer"};
}

Result<void> send_all(RedisWire& wire, std::span<iovec> bytes, const RedisPatience& patience) {
  while (true) {
    SPEEDO_ASSIGN(const std::optional<std::size_t> sent, wire.send(bytes));
    if (!sent) return {};
    advance(bytes, *sent);
    if (bytes.empty() && !wire.owes()) return {};
    if (*sent == 0) SPEEDO_TRY(await_socket(wire.socket(), POLLOUT, patience));
  }
}

Result<std::size_t> await_bytes(RedisWire& wire, std::span<char> into,
                                const RedisPatience& patience) {
  const iovec vector{into.data(), into.size()};
  while (true) {
    SPEEDO_ASSIGN(const std::size_t received, wire.receive(std::span(&vector, 1)));
    if (received > 0) return received;
    SPEEDO_TRY(await_socket(wire.socket(), POLLIN, patience));
  }
}

}  // namespace speedo
