#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "support/free_port.hpp"

namespace speedo::test {

// A redis-server of its own, in a temporary directory, on a port of the loopback that stays its
// own while it is away, and on a unix socket. Gone when the object is gone. A test that cannot
// start one fails.
// Thread safety: one thread, which must outlive the server: the server dies with the thread that
// started it.
class RedisServer {
 public:
  struct Options {
    std::string password = {};
    bool append_only = false;  // keeps the data over restart()
    std::string extra = {};    // lines of redis.conf
  };

  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  int port() const { return port_.port(); }
  std::string tcp_uri() const;  // as --redis takes it, with the password
  std::string unix_uri() const;

  void kill();   // SIGKILL, and waits for the end
  void start();  // after kill(): the same addresses; data only with append_only
  void restart() {
    kill();
    start();
  }
  void pause();  // SIGSTOP: accepts connections, answers nothing
  void resume();
  bool running() const { return process_ > 0; }

 private:
  void launch();
  bool answers() const;
  Options options_;
  std::filesystem::path folder_;
  const ReservedPort port_;
  pid_t process_ = -1;
};

}  // namespace speedo::test
