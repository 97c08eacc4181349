#include "gate/gate_connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>

namespace speedo {
namespace {

constexpr std::size_t kReadBytes = 16384;
constexpr int kReadsAtOnce = 4;  // then others have their turn

enum class ReadEnd { kMore, kNothing, kOver };

// Calls `take` with what one read gives.
template <class Take>
ReadEnd read_some(int socket, Take take) {
  std::array<char, kReadBytes> piece;
  const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
  if (got > 0) {
    take(std::string_view(piece.data(), static_cast<std::size_t>(got)));
    return static_cast<std::size_t>(got) == piece.size() ? ReadEnd::kMore : ReadEnd::kNothing;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return ReadEnd::kNothing;
  return ReadEnd::kOver;
}

}  // namespace

bool GateConnection::write_some(int socket, std::string& buffer) {
  while (!buffer.empty()) {
    const ssize_t sent = ::send(socket, buffer.data(), buffer.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      buffer.erase(0, static_cast<std::size_t>(sent));
      continue;
    }
    return errno == EAGAIN || errno == EINTR;
  }
  return true;
}

bool GateConnection::read_network(Instant now) {
  if (network_gone_ || link_.to_local().size() >= kGateBufferBytes) return false;
  const ReadEnd end = read_some(
      network(), [&](std::string_view bytes) { link_.from_network(bytes, now); });
  if (end == ReadEnd::kOver) {
    network_gone_ = true;
    link_.network_ended();
  }
  return end == ReadEnd::kMore;
}

bool GateConnection::read_local(Instant now) {
  if (!has_local() || link_.state() != GateLink::State::kOpen) return false;
  if (link_.to_network().size() >= kGateBufferBytes) return false;
  const ReadEnd end =
      read_some(local(), [&](std::string_view bytes) { link_.from_local(bytes, now); });
  if (end == ReadEnd::kOver) {
    link_.local_ended(now);
    local_.reset();  // epoll would tell of its end again and again
  }
  return end == ReadEnd::kMore;
}

// What CAF holds for a peer has no limit, and is more than is seen here: a peer that takes a little
// now and then makes room that CAF fills at once.
bool GateConnection::is_stalled(bool was_full, Instant now) {
  const bool is_full = link_.to_network().size() >= kGateBufferBytes;
  if (was_full || is_full) {
    if (!full_since_) full_since_ = now;
    full_at_ = now;
  } else if (full_since_ && now - full_at_ >= kGateRelief) {
    full_since_.reset();
  }
  // This process may have been stopped: what is not full any more may be none's fault but its own.
  return is_full && now - *full_since_ >= kGateStall;
}

std::optional<Instant> GateConnection::deadline() const {
  const auto of_link = link_.deadline();
  if (!full_since_) return of_link;
  const Instant of_stall = *full_since_ + kGateStall;
  return of_link ? std::min(*of_link, of_stall) : of_stall;
}

bool GateConnection::service(Instant now, Ends ends) {
  // It has been since the last time.
  const bool was_full = link_.to_network().size() >= kGateBufferBytes;
  for (int i = 0; ends != Ends::kLocal && i < kReadsAtOnce && read_network(now); ++i) {
  }
  for (int i = 0; ends != Ends::kNetwork && i < kReadsAtOnce && read_local(now); ++i) {
  }
  // What has come by now counts, as this process may have been stopped.
  if (ends != Ends::kLocal) link_.pass_time(now);
  // CAF's own end may be closed already; then there is nobody to tell, but what it has said before
  // may wait until the peer takes more.
  if (has_local() && !write_some(local(), link_.to_local())) link_.to_local().clear();
  if (link_.state() == GateLink::State::kEnded) return true;
  if (!write_some(network(), link_.to_network()) || is_stalled(was_full, now)) {
    network_gone_ = true;
    link_.network_ended();
    return true;
  }
  // What the peer has sent and nobody reads would make the system reset the connection, and with it
  // what the peer has not read yet: it is waited for.
  if (link_.state() == GateLink::State::kFarewell && link_.to_network().empty() && !said_all_) {
    said_all_ = true;
    ::shutdown(network(), SHUT_WR);
  }
  return network_gone_;
}

std::uint32_t GateConnection::network_interest() {
  std::uint32_t interest = link_.to_network().empty() ? 0U : std::uint32_t{EPOLLOUT};
  if (link_.to_local().size() < kGateBufferBytes) interest |= EPOLLIN;
  return interest;
}

std::uint32_t GateConnection::local_interest() {
  std::uint32_t interest = link_.to_local().empty() ? 0U : std::uint32_t{EPOLLOUT};
  const bool reads = link_.state() == GateLink::State::kOpen &&
                     link_.to_network().size() < kGateBufferBytes;
  if (reads) interest |= EPOLLIN;
  return interest;
}

}  // namespace speedo
