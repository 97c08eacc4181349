#include "recording_proxy.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace speedo::test {
namespace {

constexpr int kLookMs = 20;  // at whether to stop

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

RecordingProxy::RecordingProxy(std::uint16_t to) : to_(to) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, SOMAXCONN) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port for a proxy");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

RecordingProxy::~RecordingProxy() {
  stopping_ = true;
  thread_.join();
  for (const Flow& flow : flows_) ::close(flow.from);
  ::close(listener_);
}

std::string RecordingProxy::recorded() const {
  const std::lock_guard lock(mutex_);
  std::string all;
  for (const Flow& flow : flows_) all += flow.bytes;
  return all;
}

void RecordingProxy::run() {
  while (!stopping_) {
    std::vector<pollfd> polled{{listener_, POLLIN, 0}};
    for (const Flow& flow : flows_) polled.push_back({flow.open ? flow.from : -1, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), kLookMs) <= 0) continue;
    for (std::size_t i = 1; i < polled.size(); ++i) {
      Flow& flow = flows_[i - 1];
      if (polled[i].revents == 0 || pass_on(flow)) continue;
      ::shutdown(flow.to, SHUT_WR);
      flow.open = false;  // Closed at the end: the other direction may go on.
    }
    if (polled[0].revents != 0) accept_one();
  }
}

void RecordingProxy::accept_one() {
  const int near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int far = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(to_);
  if (::connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(near);
    ::close(far);
    return;
  }
  const std::lock_guard lock(mutex_);
  flows_.push_back({.from = near, .to = far});
  flows_.push_back({.from = far, .to = near});
}

bool RecordingProxy::pass_on(Flow& flow) {
  std::array<char, 16384> buffer{};
  const ssize_t got = ::recv(flow.from, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  const auto size = static_cast<std::size_t>(got);
  {
    const std::lock_guard lock(mutex_);
    flow.bytes.append(buffer.data(), size);
  }
  for (std::size_t sent = 0; sent < size;) {
    const ssize_t more = ::send(flow.to, buffer.data() + sent, size - sent, MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += static_cast<std::size_t>(more);
  }
  return true;
}

}  // namespace speedo::test
