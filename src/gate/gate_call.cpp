// Gate::call(): the side that connects, as far as it waits.
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>

#include "base/descriptor_fault.hpp"
#include "gate/gate_loop.hpp"

namespace speedo {
namespace {

constexpr std::chrono::milliseconds kPollSlice{50};
// Of one call: a refusal is believed the second time, as bytes may be changed on their way; and a
// busy gate may have closed a connection to make room.
constexpr int kAttemptsMax = 4;
constexpr const char* kNobody = "nobody listens; is speedo-master running there?";

struct CallTarget {
  const std::string& host;
  std::uint16_t port;
  const std::string& source;
  const std::atomic<bool>& stop;
  const Clock& clock;
  Instant deadline;

  Error error(const std::string& what, ErrorCode code = ErrorCode::kUnavailable) const {
    const std::string from = source.empty() ? "" : fmt::format("calling from {}: ", source);
    return Error{code, fmt::format("master {}:{}: {}{}", host, port, from, what)};
  }
  Error silent() const {
    return error("no answer; is the address right, does a firewall block it?");
  }

  // Waits until the socket is ready for `events`. Looks once more when time is over: this process
  // may have stood still, and the answer be there.
  Result<void> wait(int socket, short events) const {
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    bool is_last = false;
    while (!stop && !is_last) {
      is_last = clock.now() >= deadline;
      const auto slice = is_last ? 0 : static_cast<int>(kPollSlice.count());
      if (::poll(&entry, 1, slice) > 0) return {};
    }
    return silent();
  }
};

Result<void> connect_socket(const CallTarget& target, int socket, const addrinfo& address) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return {};
  int fault = errno;
  if (fault == EINPROGRESS) {
    SPEEDO_TRY(target.wait(socket, POLLOUT));
    socklen_t size = sizeof(fault);
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &fault, &size);
  }
  if (fault == 0) return {};
  if (fault == ECONNREFUSED) return target.error(kNobody);
  return target.error(std::strerror(fault));
}

// Until the other gate has let us in.
Result<void> go_in(const CallTarget& target, GateConnection& connection) {
  GateLink& link = connection.link();
  while (link.state() == GateLink::State::kAdmission) {
    const auto events = static_cast<short>(connection.network_interest());
    SPEEDO_TRY(target.wait(connection.network(), events));
    connection.service(target.clock.now());
  }
  if (link.was_admitted()) return {};
  return target.error(link.fault()->message, link.fault()->code);
}

// The first address from there on that can be called from one of this family; AF_UNSPEC: from any.
const addrinfo* callable(const addrinfo* address, int family) {
  while (address != nullptr && family != AF_UNSPEC && address->ai_family != family) {
    address = address->ai_next;
  }
  return address;
}

int count_callable(const addrinfo* address, int family) {
  int count = 0;
  for (; (address = callable(address, family)) != nullptr; address = address->ai_next) ++count;
  return count;
}

bool is_final(ErrorCode code) {
  return code == ErrorCode::kRefused || code == ErrorCode::kMismatch;
}

}  // namespace

Result<std::unique_ptr<GateConnection>> Gate::Loop::connect(const std::string& host,
                                                            std::uint16_t port,
                                                            const addrinfo& address,
                                                            const CallLimits& limits) {
  const CallTarget target{host, port, limits.source, limits.stop, limits.clock, limits.deadline};
  const CallTarget reached{host, port, limits.source, limits.stop, limits.clock, limits.reached_by};
  auto socket = std::make_unique<Descriptor>(::socket(
      address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (socket->get() < 0) return target.error(descriptor_fault(errno));
  if (!limits.source.empty()) {
    const auto bound = call_from(socket->get(), limits.source);
    if (!bound) return target.error(bound.error().message);
  }
  SPEEDO_TRY(connect_socket(reached, socket->get(), address));
  send_at_once(socket->get());
  SPEEDO_ASSIGN(auto admission,
                Admission::call(credentials(), {.protocol = options_.protocol,
                                                .role = options_.role,
                                                .host = host}));
  const Instant now = limits.clock.now();
  auto connection = std::make_unique<GateConnection>(
      std::move(socket), GateLink(std::move(admission), "", rules_of(true), now),
      PeerAddress{fmt::format("{}:{}", host, port), host});
  SPEEDO_TRY(go_in(target, *connection));
  return connection;
}

Result<GateCall> Gate::call(const std::string& host, std::uint16_t port,
                            const std::atomic<bool>& stop, const CallTools& tools) {
  auto found = look_up_until([&] { return stop.load(); }, tools.look_up, host, port);
  if (!found) {
    return Error{found.error().code,
                 fmt::format("master {}:{}: {}", host, port, found.error().message)};
  }
  Loop::CallLimits limits{.stop = stop,
                          .clock = *tools.clock,
                          .source = tools.source,
                          .deadline = tools.clock->now() + kConnectionTimeout,
                          .reached_by = {}};
  const int family = family_of(tools.source);
  Error last{ErrorCode::kUnavailable,
             fmt::format("master {}:{}: {}", host, port,
                         family == AF_UNSPEC
                             ? "no address of that host can be used"
                             : fmt::format("of another kind of address than {}, which it is to be "
                                           "called from",
                                           tools.source))};
  for (const addrinfo* each = found->get(); (each = callable(each, family)) != nullptr;
       each = each->ai_next) {
    // One that is silent leaves their share of the time to those behind it.
    const Instant now = tools.clock->now();
    limits.reached_by = now + (limits.deadline - now) / count_callable(each, family);
    int finals = 0;
    for (int attempt = 0; attempt < kAttemptsMax && finals < 2; ++attempt) {
      auto made = loop_->connect(host, port, *each, limits);
      if (made) return hand_over(std::move(*made));
      last = made.error();
      if (is_final(last.code)) ++finals;
      if (!is_final(last.code) && finals == 0) break;
      // What refuses us may have been given another key, and we with it.
      if (finals == 1) loop_->reload_now();
    }
    if (finals == 2) return last;
  }
  return last;
}

bool Gate::found_nobody(const Error& error) { return error.message.ends_with(kNobody); }

// Gives CAF its end of a connection that was made.
Result<GateCall> Gate::hand_over(std::unique_ptr<GateConnection> made) {
  auto pair = make_socket_pair();
  if (!pair) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("master {}: {}", made->address().text, pair.error().message)};
  }
  made->give_local(std::move(pair->gate));
  auto alive = loop_->adopt(std::move(made));
  return GateCall{std::move(pair->caf), std::move(alive)};
}

}  // namespace speedo
