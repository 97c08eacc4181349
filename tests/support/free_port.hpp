#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace speedo::test {

// A port of the loopback that was free a moment ago; 0 if there is none.
inline std::uint16_t free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool found =
      ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(descriptor);
  return found ? ntohs(address.sin_port) : std::uint16_t{0};
}

}  // namespace speedo::test
