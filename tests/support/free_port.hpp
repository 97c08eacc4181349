#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace speedo::test {

// A port of the loopback that is this object's as long as it lives. Nobody listens on it: who
// connects is refused. A server that sets SO_REUSEADDR, as redis-server and masters do, can listen
// on it and go again; in between the system gives it to nobody else.
class ReservedPort {
 public:
  ReservedPort() : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    const bool reserved =
        descriptor_ >= 0 &&
        ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
        ::bind(descriptor_, raw, size) == 0 && ::getsockname(descriptor_, raw, &size) == 0;
    if (!reserved) throw std::runtime_error("no free port on the loopback");
    port_ = ntohs(address.sin_port);
  }
  ~ReservedPort() { ::close(descriptor_); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  // From here on somebody does, and accepts nobody.
  void listen() {
    if (::listen(descriptor_, 1) != 0) throw std::runtime_error("cannot listen on a free port");
  }
  std::uint16_t port() const { return port_; }
  std::string text() const { return std::to_string(port_); }
  std::string address() const { return "127.0.0.1:" + text(); }

 private:
  int descriptor_;
  std::uint16_t port_ = 0;
};

}  // namespace speedo::test
