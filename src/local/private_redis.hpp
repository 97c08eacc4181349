#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <sys/types.h>

#include <speedo/base/result.hpp>

#include "local/children.hpp"

namespace speedo {

// A Redis that a cluster uses: where it is, and what starts it.
struct RedisPlace {
  // With a log in the cluster's folder; nothing: it is somebody else's.
  std::optional<ChildCommand> command;
  std::function<bool()> answers;         // once it was started
  std::string uri;
  std::string user;                      // empty: the default one
  std::filesystem::path password_file;   // empty: it needs none
};
// Behind the socket NAME.sock in `folder`, with NAME.log beside it.
RedisPlace private_redis(const std::filesystem::path& folder, const std::string& name = "redis");

// A redis-server of this process' own, behind a unix socket in a temporary folder, without files.
// It ends with the object, and with the process. Thread safety: one thread, the one that made it.
class PrivateRedis {
 public:
  // Forks: call it before the process has threads. Errors: kUnavailable, kCannotWrite.
  static Result<std::unique_ptr<PrivateRedis>> start();

  // From now on one that ends is started again, empty, at the same place, by a thread of its own.
  // Call it once.
  void keep_up();
  std::string uri() const { return "unix://" + socket_.string(); }
  // Of the server so far, by the kernel's count; 0 where it does not tell.
  double cpu_seconds() const;

 private:
  PrivateRedis(std::filesystem::path folder, Guardian guardian);
  Result<void> launch();
  void watch(const std::stop_token& stop);

  const std::filesystem::path folder_, socket_;
  Children children_;
  std::atomic<pid_t> pid_ = 0;
  std::jthread watcher_;  // the last member: it uses the others, and they are its alone
};

}  // namespace speedo
