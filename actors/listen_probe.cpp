#include "actors/listen_probe.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include "base/descriptor.hpp"

namespace speedo {
namespace {

// errno of listening at this address; 0: it is possible.
int listen_errno(const addrinfo& address) {
  const Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return errno;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool listens = ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
                       ::listen(socket.get(), 1) == 0;
  return listens ? 0 : errno;
}

Error describe(const std::string& where, const std::string& bind, int reason) {
  const std::string start = "cannot listen on " + where + ": ";
  switch (reason) {
    case EADDRINUSE:
      return {ErrorCode::kUnavailable,
              start + "the port is in use; choose another with --port, or 0 for any free one"};
    case EADDRNOTAVAIL:
      return {ErrorCode::kUnavailable,
              start + "'" + bind + "' is not an address of this machine; give one with --bind"};
    case EACCES:
      return {ErrorCode::kRefused, start + "this user may not open it; choose a port from 1024 on"};
    case 0:
      return {ErrorCode::kUnavailable, start + "it was in use a moment ago; try again"};
    default:
      return {ErrorCode::kUnavailable, start + std::strerror(reason)};
  }
}

}  // namespace

Error why_not_listening(const std::string& bind, std::uint16_t port) {
  const std::string where = port == 0 ? bind : fmt::format("{}:{}", bind, port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(bind.empty() ? nullptr : bind.c_str(),
                                 std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    return {ErrorCode::kUnavailable, fmt::format("cannot listen on {}: no machine of this name is "
                                                 "known ({}); give an address with --bind",
                                                 where, ::gai_strerror(code))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  return describe(where, bind, listen_errno(*found));
}

}  // namespace speedo
