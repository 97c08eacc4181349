#pragma once

#include <filesystem>
#include <utility>

#include <sys/types.h>

#include <speedo/base/result.hpp>

namespace speedo {

// A small process that outlives its parent just long enough to clear up behind it: when the parent
// ends, for whatever reason (kill -9 included), it kills the process groups it was told of and
// removes the temporary folder.
class Guardian {
 public:
  // Forks: call it before the process has threads. Error: kUnavailable when it cannot.
  static Result<Guardian> create(const std::filesystem::path& temporary);
  Guardian(Guardian&& other) noexcept;
  Guardian& operator=(Guardian&&) = delete;
  // Lets it clear up and waits until it has. If somebody has killed it, the folder is removed here.
  ~Guardian();

  void watch(pid_t group);
  void forget(pid_t group);  // it has ended
  void keep_folder();        // leave the temporary folder for the user to look into

 private:
  Guardian(int pipe, pid_t pid, std::filesystem::path temporary)
      : pipe_(pipe), pid_(pid), temporary_(std::move(temporary)) {}
  void tell(char what, pid_t group);

  int pipe_ = -1;
  pid_t pid_ = -1;
  std::filesystem::path temporary_;
  bool keeps_ = false;
};

}  // namespace speedo
