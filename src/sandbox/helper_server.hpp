#pragma once

#include <cstddef>
#include <span>

#include <speedo/base/result.hpp>

#include "sandbox/helper_task.hpp"

namespace speedo {

// What a helper hands back: numbers, and so many bytes at the start of the output.
struct HelperAnswer {
  HelperNumbers numbers{};
  std::size_t output_bytes = 0;
};

// What a helper process does. Thread safety: one thread.
class HelperServer {
 public:
  virtual ~HelperServer() = default;
  // What needs files or the system, done before the process is confined.
  virtual void prepare() {}
  // `task.file` is closed behind the call, unless it is taken and -1 left. Throws nothing. Error
  // kFull: it lacks memory, and another helper is to do the next task.
  virtual Result<HelperAnswer> serve(HelperTask& task, std::span<std::byte> output) = 0;
};

// The main() of a helper program, which HelperProcess starts: serves task after task until the
// process that asks is gone, then returns the exit code. Without that process it says what the
// program is.
int run_helper(int argc, char** argv, HelperServer& server);

}  // namespace speedo
