#include "support/redis_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace speedo::test {
namespace {

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "speedo-redis-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
  folder_ = pattern;
  start();
}

RedisServer::~RedisServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string RedisServer::tcp_uri() const {
  const std::string user = options_.password.empty() ? "" : ":" + options_.password + "@";
  return "redis://" + user + "127.0.0.1:" + std::to_string(port());
}

std::string RedisServer::unix_uri() const {
  const std::string user = options_.password.empty() ? "" : ":" + options_.password + "@";
  return "unix://" + user + (folder_ / "redis.sock").string();
}

// Waits until it answers or has ended, however long it takes.
void RedisServer::start() {
  launch();
  while (!answers()) {
    if (waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = -1;
      std::ifstream log(folder_ / "log");
      throw std::runtime_error("redis-server did not start: " +
                               std::string(std::istreambuf_iterator<char>(log), {}));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void RedisServer::launch() {
  const std::filesystem::path conf = folder_ / "redis.conf";
  std::ofstream out(conf);
  out << "bind 127.0.0.1\nport " << port() << "\nunixsocket " << (folder_ / "redis.sock").string()
      << "\ndir " << folder_.string() << "\nlogfile " << (folder_ / "log").string()
      << "\nsave \"\"\nappendonly " << (options_.append_only ? "yes" : "no")
      << "\nappendfsync always\n";
  if (!options_.password.empty()) out << "requirepass " << options_.password << "\n";
  out << options_.extra << "\n";
  out.close();
  const std::string file = conf.string();
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("no process for redis-server");
  if (process_ != 0) return;
  // A test that is killed must not leave servers behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  execlp("redis-server", "redis-server", file.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

bool RedisServer::answers() const {
  const int fd = connect_to(port());
  if (fd < 0) return false;
  // With a password PING is refused, which is an answer as well; LOADING is not.
  constexpr std::string_view kPing = "PING\r\n";
  std::array<char, 64> reply{};
  const bool sent =
      send(fd, kPing.data(), kPing.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kPing.size());
  const ssize_t received = sent ? recv(fd, reply.data(), reply.size(), 0) : 0;
  close(fd);
  const std::string_view text(reply.data(), received > 0 ? static_cast<std::size_t>(received) : 0);
  return text.starts_with("+PONG") || text.starts_with("-NOAUTH");
}

void RedisServer::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

void RedisServer::pause() { ::kill(process_, SIGSTOP); }
void RedisServer::resume() { ::kill(process_, SIGCONT); }

}  // namespace speedo::test
