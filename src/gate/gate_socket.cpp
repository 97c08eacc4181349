#include "gate/gate_socket.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <fmt/format.h>

#include "base/descriptor_fault.hpp"
#include "base/name_lookup.hpp"

namespace speedo {
namespace {

constexpr int kBacklog = 512;
// TCP_RTO_MAX_MS: Debian 12's headers lack it.
constexpr int kTcpRtoMaxMs = 44;
// About what the system has of its own accord.
constexpr std::chrono::milliseconds kGivenUpAfter = std::chrono::minutes{15};

std::uint16_t bound_port(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  if (bound.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

}  // namespace

Result<ListeningSocket> listen_at(const std::string& bind, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(bind.empty() ? nullptr : bind.c_str(),
                                 std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("cannot listen on {}: {}", bind, ::gai_strerror(code))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    auto socket = std::make_unique<Descriptor>(
        ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket->get() < 0) continue;
    // Connections of an ended master that linger in the kernel do not block the port.
    const int on = 1;
    ::setsockopt(socket->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (::bind(socket->get(), each->ai_addr, each->ai_addrlen) != 0) continue;
    if (::listen(socket->get(), kBacklog) != 0) continue;
    const std::uint16_t bound = bound_port(socket->get());
    return ListeningSocket{std::move(socket), bound};
  }
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot listen on {}:{}: {}", bind, port, std::strerror(errno))};
}

int family_of(const std::string& address) {
  const auto numbers = read_numbers(address, 0);
  return numbers ? (*numbers)->ai_family : AF_UNSPEC;
}

Result<void> call_from(int socket, const std::string& source) {
  SPEEDO_ASSIGN(const HostAddresses from, read_numbers(source, 0));
  if (::bind(socket, from->ai_addr, from->ai_addrlen) == 0) return {};
  return Error{ErrorCode::kUnavailable, std::strerror(errno)};
}

// What the system does not know it refuses, and sends as it always does.
void send_at_once(int socket) {
  const auto set = [socket](int option, int value) {
    ::setsockopt(socket, IPPROTO_TCP, option, &value, sizeof(value));
  };
  set(TCP_NODELAY, 1);
  set(TCP_THIN_LINEAR_TIMEOUTS, 1);
  set(kTcpRtoMaxMs, 1000);
  // Without it a peer would be given up after 15 of these pauses, which are short now.
  set(TCP_USER_TIMEOUT, static_cast<int>(kGivenUpAfter.count()));
}

Result<SocketPair> make_socket_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return Error{ErrorCode::kFull,
                 fmt::format("no socket between gate and CAF: {}", descriptor_fault(errno))};
  }
  return SocketPair{std::make_unique<Descriptor>(ends[0]), std::make_unique<Descriptor>(ends[1])};
}

PeerAddress address_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text, sizeof(text));
    return {fmt::format("[{}]:{}", text, ntohs(ipv6.sin6_port)), text};
  }
  const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
  ::inet_ntop(AF_INET, &ipv4.sin_addr, text, sizeof(text));
  return {fmt::format("{}:{}", text, ntohs(ipv4.sin_port)), text};
}

}  // namespace speedo
