#include "monitor/http_server.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/http_get.hpp"

namespace speedo {
namespace {

std::optional<HttpAnswer> answer(std::string_view path) {
  if (path == "/page") return HttpAnswer{200, "text/plain", "hello"};
  if (path == "/broken") throw std::runtime_error("broken");
  return std::nullopt;
}

std::unique_ptr<HttpServer> start() {
  auto server = HttpServer::start({"127.0.0.1", 0}, answer);
  REQUIRE(server);
  return std::move(*server);
}

TEST_CASE("Pages are served, and whatever else is asked is refused") {
  const auto server = start();
  const std::uint16_t port = test::port_of(server->url());
  const test::HttpReply page = test::http_get(port, "/page");
  CHECK(page.status == 200);
  CHECK(page.body == "hello");
  CHECK(page.head.find("Content-Length: 5") != std::string::npos);
  CHECK(test::http_get(port, "/page?x=1").status == 200);
  const test::HttpReply head = test::http(port, "HEAD", "/page");
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  CHECK(test::http_get(port, "/other").status == 404);
  CHECK(test::http_get(port, "/../../etc/passwd").status >= 400);
  CHECK(test::http_get(port, "/broken").status == 500);
  const test::HttpReply other = test::http(port, "DELETE", "/page");
  CHECK(other.status == 405);
  CHECK(other.head.find("Allow: GET, HEAD") != std::string::npos);
  CHECK(page.head.find("Allow:") == std::string::npos);
}

TEST_CASE("What is not HTTP harms nobody") {
  const auto server = start();
  const std::uint16_t port = test::port_of(server->url());
  test::answer_to(port, std::string(100000, '\xff') + "\r\n\r\n");
  test::answer_to(port, "GET /" + std::string(20000, 'a') + " HTTP/1.1\r\n\r\n");
  test::answer_to(port, "\r\n\r\n");
  CHECK(test::http_get(port, "/page").status == 200);
}

TEST_CASE("Several clients are served at once") {
  const auto server = start();
  const std::uint16_t port = test::port_of(server->url());
  std::atomic<int> served{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 8; ++i) {
      clients.emplace_back([&] {
        for (int k = 0; k < 20; ++k) served += test::http_get(port, "/page").status == 200 ? 1 : 0;
      });
    }
  }
  CHECK(served == 160);
}

// Connections that ask nothing, and whether the server has all of them open yet.
class IdleClients {
 public:
  IdleClients(std::uint16_t port, int count) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; ++i) {
      clients_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      REQUIRE(::connect(clients_.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
              0);
    }
  }
  ~IdleClients() {
    for (const int client : clients_) ::close(client);
  }
  IdleClients(const IdleClients&) = delete;
  IdleClients& operator=(const IdleClients&) = delete;
  bool all_open() const {
    return std::ranges::all_of(clients_, [](int client) {
      char byte = 0;
      return ::recv(client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    });
  }

 private:
  std::vector<int> clients_;
};

TEST_CASE("Clients that ask nothing do not keep others from an answer") {
  const auto server = start();
  const std::uint16_t port = test::port_of(server->url());
  // Several times, as a machine under load may be late once.
  bool answered = false;
  for (int i = 0; i < 5 && !answered; ++i) {
    const IdleClients idle(port, 48);
    const bool is_served = test::http_get(port, "/page").status == 200;
    answered = is_served && idle.all_open();
  }
  CHECK(answered);
}

TEST_CASE("A port in use is an error that says so") {
  test::ReservedPort taken;
  taken.listen();
  const auto server = HttpServer::start({"127.0.0.1", taken.port()}, answer);
  REQUIRE_FALSE(server);
  CHECK(server.error().code == ErrorCode::kUnavailable);
  CHECK(server.error().message.find(taken.text()) != std::string::npos);
  CHECK(server.error().message.find("in use") != std::string::npos);
}

TEST_CASE("An IPv6 address is listened at, or refused for what it is") {
  const auto server = HttpServer::start({"::1", 0}, answer);
  if (server) return;
  CHECK(server.error().code == ErrorCode::kUsage);
  CHECK(server.error().message.find("no IPv6: give an IPv4 address") != std::string::npos);
}

}  // namespace
}  // namespace speedo
