#include "doctor/network_check.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptor.hpp"
#include "base/process_name.hpp"

namespace speedo {

namespace {

bool is_loopback_address(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address.ai_addr, sizeof in);
    return (ntohl(in.sin_addr.s_addr) >> 24U) == 127;
  }
  if (address.ai_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, address.ai_addr, sizeof in);
  return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr) != 0;
}

const char* remedy_of_port(int reason) {
  if (reason == EADDRINUSE) return "stop what listens there, or choose another --port";
  if (reason == EACCES) return "ports below 1024 are the administrator's: choose another --port";
  return "give --bind an address that this machine has";
}

Finding check_bound(const addrinfo& address, const std::string& where) {
  const Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (socket.get() >= 0) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = socket.get() >= 0 &&
                       ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
                       ::listen(socket.get(), 1) == 0;
  if (listens) return {"port", Health::kOk, where + " is free"};
  const int reason = errno;
  return {"port", Health::kProblem, fmt::format("{}: {}", where, std::strerror(reason)),
          remedy_of_port(reason)};
}

}  // namespace

Finding check_host(const std::string& announced, const LookUp& look_up) {
  const bool is_own = announced.empty();
  const std::string name = is_own ? host_name() : announced;
  const Health bad = is_own ? Health::kWarning : Health::kProblem;
  const std::string remedy = "give --host or --bind an address that the workers' machines reach";
  const auto found = look_up(name, 0);
  if (!found) return {"host", bad, "'" + name + "' has no address", remedy};
  for (const addrinfo* each = found->get(); each != nullptr; each = each->ai_next) {
    if (is_loopback_address(*each)) {
      return {"host", bad,
              fmt::format("'{}' is {}, the loopback: workers elsewhere would call themselves", name,
                          numeric_host(*each)),
              remedy};
    }
  }
  return {"host", Health::kOk, fmt::format("'{}' is {}", name, numeric_host(**found))};
}

Finding check_port(const std::string& bind, std::uint16_t port) {
  const std::string where = fmt::format("port {} of {}", port, bind);
  const auto found = ask_system(bind, port);
  if (!found) {
    return {"port", Health::kProblem, "'" + bind + "' has no address",
            "give --bind an address that this machine has"};
  }
  return check_bound(**found, where);
}

}  // namespace speedo
