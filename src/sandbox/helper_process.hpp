#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"
#include "sandbox/helper_message.hpp"
#include "sandbox/helper_starter.hpp"
#include "sandbox/helper_task.hpp"
#include "sandbox/shared_window.hpp"

namespace speedo {

struct HelperOptions {
  std::filesystem::path program;
  // What it may take beside its program: half of it for tasks and answers, half for its work.
  std::uint64_t memory_bytes = std::uint64_t{2} << 30U;
  // For a task; one that takes longer does not end.
  std::chrono::milliseconds patience{120000};
};

// How a helper ended.
struct HelperEnd {
  int signal = 0;  // 0: it returned
  int exit_code = 0;
  bool too_slow = false;   // we ended it
  bool untouched = false;  // it had not been given the task
};
// "SIGSEGV", "SIGSYS: it wanted more than to compute", "no answer in time".
std::string to_string(const HelperEnd& end);

// What became of a task.
struct HelperOutcome {
  Result<HelperReply> reply;     // kData, kUnsupported: what the helper says of the input
  std::optional<HelperEnd> end;  // it has ended, and there is no reply
  // It lacked memory, of which it may not have given back all: use another one.
  bool lacked_memory = false;
};

// What became of a group.
struct GroupOutcome {
  // To the first tasks, as HelperOutcome's. One that fails among others may lack the room that they
  // take, so an error is that of a task alone: in a group of several the replies end before it.
  std::vector<Result<HelperReply>> replies = {};
  std::optional<HelperEnd> end = {};  // it has ended, and there are no replies
  bool lacked_memory = false;
};

// How many of the tasks, from the first on, may be handed over together; one at least. A task that
// brings a file is alone. Requires: there is one.
std::size_t group_size(std::span<const HelperTask> tasks);

// A process that computes for this one and can do nothing else (confinement.hpp).
// Thread safety: one thread at a time.
class HelperProcess {
 public:
  // Waits until it is confined. Errors: kNotFound, kUnavailable, kUnsupported, kFull.
  static Result<std::unique_ptr<HelperProcess>> start(const HelperOptions& options,
                                                      HelperStarter& starter);
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;
  ~HelperProcess();  // ends it and waits until it is gone

  // Requires: no run() before has told of its end.
  HelperOutcome run(const HelperTask& task);
  // Requires, too: group_size() of them is all.
  GroupOutcome run_group(std::span<const HelperTask> group);
  // The most that input and output may have together.
  std::size_t window_bytes() const { return window_.bytes().size(); }
  // Gives back the memory of a large task.
  void shrink();

 private:
  HelperProcess(SharedWindow window, Descriptor socket);
  Result<void> wait_until_ready();
  GroupOutcome receive(std::span<const HelperTask> group, WindowPlaces places);
  HelperEnd end();

  SharedWindow window_;
  Descriptor socket_;
  pid_t pid_ = -1;
  std::size_t used_ = 0;  // of the window, at most, since it was shrunk
};

}  // namespace speedo
