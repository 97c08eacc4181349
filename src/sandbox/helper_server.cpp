#include "sandbox/helper_server.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/parse_number.hpp"
#include "sandbox/confinement.hpp"
#include "sandbox/helper_message.hpp"
#include "sandbox/helper_start.hpp"
#include "sandbox/shared_window.hpp"

namespace speedo {

namespace {

constexpr int kUsageExit = 2, kEndExit = 0, kFailedExit = 71;

struct HelperArguments {
  Confinement confinement;
  std::size_t window_bytes = 0;
};

std::optional<HelperArguments> arguments_of(int argc, char** argv) {
  if (argc != 1 + kHelperArguments) return std::nullopt;
  const auto parent = parse_number<pid_t>(argv[1]);
  const auto memory = parse_number<std::uint64_t>(argv[2]);
  const auto window = parse_number<std::uint64_t>(argv[3]);
  if (!parent || !memory || !window || *window == 0) return std::nullopt;
  return HelperArguments{{*parent, *memory}, static_cast<std::size_t>(*window)};
}

// An answer whose output is the error's message, as far as there is room.
AnswerMessage answer_of(const Error& error, std::span<std::byte> output) {
  const std::size_t bytes = std::min(error.message.size(), output.size());
  std::memcpy(output.data(), error.message.data(), bytes);
  return {.code = static_cast<std::uint32_t>(error.code) + 1, .output_bytes = bytes};
}

AnswerMessage answer_of(const Result<HelperAnswer>& answer, std::span<std::byte> output) {
  if (!answer) return answer_of(answer.error(), output);
  return {.numbers = answer->numbers, .output_bytes = answer->output_bytes};
}

// Whether the other side is still there.
bool serve_one(HelperServer& server, const SharedWindow& window) {
  TaskMessage message;
  Descriptor file(-1);
  if (receive_bytes(kHelperSocket, bytes_of(message), &file) != Received::kMessage) return false;
  const std::span<std::byte> all = window.bytes();
  const std::size_t behind = output_offset(static_cast<std::size_t>(message.input_bytes));
  if (behind >= all.size()) return false;
  const std::span<std::byte> output = all.subspan(behind);
  HelperTask task{.kind = message.kind,
                  .numbers = message.numbers,
                  .input = all.first(static_cast<std::size_t>(message.input_bytes)),
                  .file = file.release()};
  AnswerMessage answer = answer_of(server.serve(task, output), output);
  if (task.file >= 0) ::close(task.file);
  return send_bytes(kHelperSocket, bytes_of(answer));
}

void close_all_behind(int last) {
  ::syscall(SYS_close_range, static_cast<unsigned>(last) + 1, ~0U, 0U);
}

int serve_all(const HelperArguments& arguments, HelperServer& server) {
  close_all_behind(kHelperWindow);
  const auto window = SharedWindow::map(Descriptor(kHelperWindow), arguments.window_bytes);
  if (!window) return kFailedExit;
  server.prepare();
  const auto confined = confine_process(arguments.confinement);
  AnswerMessage ready;
  if (!confined) ready = answer_of(confined.error(), window->bytes());
  if (!send_bytes(kHelperSocket, bytes_of(ready)) || !confined) return kFailedExit;
  while (serve_one(server, *window)) {
  }
  return kEndExit;
}

}  // namespace

int run_helper(int argc, char** argv, HelperServer& server) {
  const auto arguments = arguments_of(argc, argv);
  if (!arguments) {
    std::fprintf(stderr,
                 "%s: started by speedo, speedo-master and speedo-worker, to read images and HDF5 "
                 "files for them (--parser-process)\n",
                 argc > 0 ? argv[0] : "speedo-parser");
    return kUsageExit;
  }
  // Not exit(): what it would tidy up goes with the process, and may want more than it is allowed.
  ::_exit(serve_all(*arguments, server));
}

}  // namespace speedo
