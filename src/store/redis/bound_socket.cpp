#include "store/redis/bound_socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/descriptor.hpp"

namespace speedo {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Of an address in numbers; null if it is none.
Addresses numeric(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

Error failed(const std::string& source, int number) {
  return Error{ErrorCode::kUnavailable,
               "connecting from " + source + ": " + std::strerror(number)};
}

// What a connection that was begun came to.
Result<void> await_connection(int fd, const std::string& source,
                              std::chrono::milliseconds timeout) {
  pollfd polled{fd, POLLOUT, 0};
  if (poll(&polled, 1, static_cast<int>(timeout.count())) <= 0) {
    return Error{ErrorCode::kTimeout, "connecting from " + source + ": no answer in time: is the "
                                      "server behind a firewall, or out of this network?"};
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return failed(source, error);
  return {};
}

}  // namespace

Result<int> connect_from(const std::string& source, const std::string& host, int port,
                         std::chrono::milliseconds timeout) {
  const Addresses from = numeric(source, "0"), to = numeric(host, std::to_string(port));
  if (!from || !to || from->ai_family != to->ai_family) {
    return Error{ErrorCode::kUnavailable,
                 "connecting from " + source + ": " + host + " is of another kind of address"};
  }
  Descriptor fd(::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return failed(source, errno);
  if (::bind(fd.get(), from->ai_addr, from->ai_addrlen) != 0) return failed(source, errno);
  if (::connect(fd.get(), to->ai_addr, to->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return failed(source, errno);
    SPEEDO_TRY(await_connection(fd.get(), source, timeout));
  }
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
  return fd.release();
}

}  // namespace speedo
