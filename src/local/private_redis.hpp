#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <sys/types.h>

#include <speedo/base/result.hpp>

#include "local/children.hpp"

namespace speedo {

// How a redis-server without files is started in `folder`, with the socket redis.sock and the log
// redis.log there.
ChildCommand private_redis_command(const std::filesystem::path& folder);

// A redis-server of this process' own, behind a unix socket in a temporary folder, without files.
// It ends with the object, and with the process.
class PrivateRedis {
 public:
  // Forks: call it before the process has threads. Errors: kUnavailable, kCannotWrite.
  static Result<std::unique_ptr<PrivateRedis>> start();

  std::string uri() const { return "unix://" + socket_.string(); }
  // Of the server so far, by the kernel's count; 0 where it does not tell.
  double cpu_seconds() const;

 private:
  PrivateRedis(std::filesystem::path folder, Guardian guardian);
  Result<void> launch();

  const std::filesystem::path folder_, socket_;
  Children children_;
  pid_t pid_ = 0;
};

}  // namespace speedo
