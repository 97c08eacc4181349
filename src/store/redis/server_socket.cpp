#include "store/redis/server_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/descriptor.hpp"
#include "base/descriptor_fault.hpp"
#include "base/name_lookup.hpp"

namespace speedo {
namespace {

constexpr int kKeepAliveIdleSeconds = 15;
constexpr int kKeepAlivePauseSeconds = 5;
constexpr int kKeepAliveProbes = 3;

// Null if it is a name.
HostAddresses in_numbers(const std::string& host, int port) {
  const auto read = read_numbers(host, port);
  return read ? *read : nullptr;
}

// `start`: where it was to be connected from, if that was asked for.
Error connect_error(const std::string& start, int number) {
  if (number == EAGAIN || number == ETIMEDOUT) {
    return Error{ErrorCode::kTimeout, start + "no answer in time: is the server overloaded, "
                                              "stopped or behind a firewall?"};
  }
  if (is_descriptor_shortage(number)) {
    return Error{ErrorCode::kUnavailable, start + descriptor_fault(number)};
  }
  return Error{ErrorCode::kUnavailable, start + std::strerror(number) +
                                            ": start redis-server there or give another address"};
}

Result<void> finish_connecting(int fd, const sockaddr* to, socklen_t size,
                               std::chrono::milliseconds timeout, const std::string& start) {
  if (::connect(fd, to, size) == 0) return {};
  if (errno != EINPROGRESS) return connect_error(start, errno);
  pollfd polled{fd, POLLOUT, 0};
  if (poll(&polled, 1, static_cast<int>(timeout.count())) <= 0) {
    return connect_error(start, ETIMEDOUT);
  }
  int error = 0;
  socklen_t error_size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size);
  if (error != 0) return connect_error(start, error);
  return {};
}

void set_number(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

}  // namespace

Result<int> connect_tcp(const std::string& source, const std::string& host, int port,
                        std::chrono::milliseconds timeout) {
  const std::string start = source.empty() ? "" : "connecting from " + source + ": ";
  const HostAddresses to = in_numbers(host, port);
  const HostAddresses from = source.empty() ? nullptr : in_numbers(source, 0);
  if (!to || (!source.empty() && (!from || from->ai_family != to->ai_family))) {
    return Error{ErrorCode::kUnavailable, start + host + " is of another kind of address"};
  }
  Descriptor fd(::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return connect_error(start, errno);
  if (from && ::bind(fd.get(), from->ai_addr, from->ai_addrlen) != 0) {
    return connect_error(start, errno);
  }
  SPEEDO_TRY(finish_connecting(fd.get(), to->ai_addr, to->ai_addrlen, timeout, start));
  set_number(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set_number(fd.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_number(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set_number(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepAlivePauseSeconds);
  set_number(fd.get(), IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  return fd.release();
}

Result<int> connect_unix(const std::string& path, std::chrono::milliseconds timeout) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof(to.sun_path)) return connect_error("", ENAMETOOLONG);
  path.copy(to.sun_path, path.size());
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return connect_error("", errno);
  SPEEDO_TRY(finish_connecting(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to),
                               timeout, ""));
  return fd.release();
}

}  // namespace speedo
