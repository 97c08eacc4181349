#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace speedo::test {

// What a server on the loopback answers to these bytes, up to the end of the connection; empty if
// nobody listens.
inline std::string answer_to(std::uint16_t port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    (void)!::write(fd, request.data(), request.size());
    char part[4096];
    for (ssize_t got = 0; (got = ::read(fd, part, sizeof(part))) > 0;) {
      answer.append(part, static_cast<std::size_t>(got));
    }
  }
  ::close(fd);
  return answer;
}

struct HttpReply {
  int status = 0;  // 0: no answer
  std::string head, body;
};

inline HttpReply http(std::uint16_t port, const std::string& method, const std::string& path) {
  const std::string text = answer_to(port, method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  HttpReply reply;
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos || text.size() < 12) return reply;
  reply.status = std::stoi(text.substr(9, 3));
  reply.head = text.substr(0, end);
  reply.body = text.substr(end + 4);
  return reply;
}

inline HttpReply http_get(std::uint16_t port, const std::string& path) {
  return http(port, "GET", path);
}

// Of "http://127.0.0.1:1234" or of an address that ends so.
inline std::uint16_t port_of(const std::string& url) {
  return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

}  // namespace speedo::test
