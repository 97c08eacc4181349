#include "actors/listen_probe.hpp"

#include <cstdint>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/catch.hpp"

namespace speedo {
namespace {

// A port of this machine that is listened on.
class TakenPort {
 public:
  TakenPort() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(fd_, 1) == 0);
    socklen_t size = sizeof(address);
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(fd_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  std::uint16_t port() const { return port_; }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

bool says(const Error& error, const std::string& text) {
  INFO(error.message);
  return error.message.find(text) != std::string::npos;
}

TEST_CASE("Why a port cannot be listened on is told apart") {
  const TakenPort taken;
  const Error in_use = why_not_listening("127.0.0.1", taken.port());
  CHECK(in_use.code == ErrorCode::kUnavailable);
  CHECK(says(in_use, "127.0.0.1:" + std::to_string(taken.port()) + ": the port is in use"));
  // TEST-NET-1 is nobody's address.
  const Error elsewhere = why_not_listening("192.0.2.7", 0);
  CHECK(elsewhere.code == ErrorCode::kUnavailable);
  CHECK(
      says(elsewhere, "cannot listen on 192.0.2.7: '192.0.2.7' is not an address of this machine"));
  CHECK(says(why_not_listening("no.such.host.invalid", 5), "no machine of this name is known"));
  CHECK(says(why_not_listening("127.0.0.1", 0), "in use a moment ago"));
}

}  // namespace
}  // namespace speedo
