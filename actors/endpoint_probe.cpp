#include "actors/endpoint_probe.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "base/descriptor.hpp"

namespace speedo {
namespace {

constexpr std::chrono::milliseconds kPollSlice{50};

// The start of the greeting that a CAF node sends to whoever connects: operation 0, two bytes of
// padding, flags, and the length of what follows.
constexpr std::size_t kGreetingBytes = 8;

struct Attempt {
  std::string name;  // "host:port", for messages
  const std::atomic<bool>& stop;
  const Clock& clock;
  Instant deadline;

  Error error(const std::string& what) const {
    return Error{ErrorCode::kUnavailable, fmt::format("master {}: {}", name, what)};
  }

  // Waits until the socket is ready for `events`.
  Result<void> wait(const Descriptor& socket, short events) const {
    pollfd entry{.fd = socket.get(), .events = events, .revents = 0};
    while (!stop && clock.now() < deadline) {
      if (::poll(&entry, 1, static_cast<int>(kPollSlice.count())) > 0) return {};
    }
    return error("no answer; is the address right, does a firewall block it?");
  }
};

Result<void> connect_to(const Attempt& attempt, const Descriptor& socket, const addrinfo& target) {
  if (::connect(socket.get(), target.ai_addr, target.ai_addrlen) == 0) return {};
  int fault = errno;
  if (fault == EINPROGRESS) {
    SPEEDO_TRY(attempt.wait(socket, POLLOUT));
    socklen_t size = sizeof(fault);
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &fault, &size);
  }
  if (fault == 0) return {};
  if (fault == ECONNREFUSED)
    return attempt.error("nobody listens; is speedo-master running there?");
  return attempt.error(std::strerror(fault));
}

Result<void> read_greeting(const Attempt& attempt, const Descriptor& socket) {
  std::array<unsigned char, kGreetingBytes> bytes{};
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    SPEEDO_TRY(attempt.wait(socket, POLLIN));
    const ssize_t got = ::recv(socket.get(), bytes.data() + filled, bytes.size() - filled, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return attempt.error("closed the connection; is it a speedo-master?");
    filled += static_cast<std::size_t>(got);
  }
  std::size_t length = 0;
  for (std::size_t i = 4; i < kGreetingBytes; ++i) length = length << 8U | bytes[i];
  const bool greets = bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 0 && length > 0 &&
                      length <= kMessageBytesMax;
  if (!greets) return attempt.error("something else than a speedo-master listens there");
  return {};
}

Result<HostAddresses> addresses_of(const Address& address, const std::atomic<bool>& stop,
                                   const LookUp& look_up) {
  auto found = look_up_until([&] { return stop.load(); }, look_up, address.host, address.port);
  if (found) return found;
  return Error{found.error().code,
               fmt::format("master {}:{}: {}", address.host, address.port, found.error().message)};
}

}  // namespace

Result<Address> probe_endpoint(const Address& address, const std::atomic<bool>& stop,
                               const ProbeTools& tools) {
  SPEEDO_ASSIGN(const HostAddresses list, addresses_of(address, stop, tools.look_up));
  const Attempt attempt{.name = fmt::format("{}:{}", address.host, address.port),
                        .stop = stop,
                        .clock = *tools.clock,
                        .deadline = tools.clock->now() + kConnectionTimeout};
  Error last = attempt.error("no address of that host can be used");
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const Descriptor socket(::socket(
        each->ai_family, each->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, each->ai_protocol));
    if (socket.get() < 0) continue;
    const auto connected = connect_to(attempt, socket, *each);
    if (connected) {
      SPEEDO_TRY(read_greeting(attempt, socket));
      return Address{.host = numeric_host(*each), .port = address.port};
    }
    last = connected.error();
  }
  return last;
}

}  // namespace speedo
