#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/descriptor.hpp"
#include "base/name_lookup.hpp"

namespace speedo::test {

inline sockaddr_in ipv4(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// An address of the loopback that answers nobody, as one behind a firewall: its queue is full.
class SilentAddress {
 public:
  SilentAddress(const std::string& host, int port)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = ipv4(host, port);
    const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
    const bool listens = ::bind(listener_.get(), raw, sizeof(address)) == 0 &&
                         ::listen(listener_.get(), 0) == 0;
    if (!listens) throw std::runtime_error(host + " cannot be listened on");
    for (int i = 0; i < 100; ++i) {
      waiting_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (::connect(waiting_.back().get(), raw, sizeof(address)) == 0) continue;
      pollfd polled{waiting_.back().get(), POLLOUT, 0};
      if (::poll(&polled, 1, 200) == 0) return;
    }
    throw std::runtime_error(host + " answers");
  }

 private:
  Descriptor listener_;
  std::vector<Descriptor> waiting_;
};

// The look-up of a name that stands for two addresses, in this order.
inline LookUp two_addresses(const std::string& first, const std::string& second) {
  return [first, second](const std::string&, int port) -> Result<HostAddresses> {
    struct Two {
      std::array<sockaddr_in, 2> addresses{};
      std::array<addrinfo, 2> entries{};
    };
    const auto two = std::make_shared<Two>();
    two->addresses = {ipv4(first, port), ipv4(second, port)};
    for (std::size_t i = 0; i < two->entries.size(); ++i) {
      addrinfo& entry = two->entries[i];
      entry.ai_family = AF_INET;
      entry.ai_socktype = SOCK_STREAM;
      entry.ai_addr = reinterpret_cast<sockaddr*>(&two->addresses[i]);
      entry.ai_addrlen = sizeof(sockaddr_in);
    }
    two->entries[0].ai_next = &two->entries[1];
    return HostAddresses(two, &two->entries[0]);
  };
}

}  // namespace speedo::test
