#include "sandbox/helper_server.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

// The answers to the first tasks of a group, behind whose inputs the places lie. They end with one
// that fails, which is done again alone: it may have lacked the room that the others take.
std::span<AnswerMessage> answer_group(HelperServer& server, std::span<HelperTask> group,
                                      WindowPlaces places, std::span<AnswerMessage> room) {
  std::size_t answered = 0, bytes = 0;
  for (HelperTask& task : group) {
    const std::span<std::byte> output = places.rest();
    const auto answer = server.serve(task, output);
    room[answered] = answer_of(answer, output);
    bytes += room[answered].output_bytes;
    const auto placed = places.take(room[answered++].output_bytes);
    if (!placed || !answer || bytes > kGroupOutputBytes || places.rest().empty()) break;
  }
  return room.first(answered);
}

// Whether the other side is still there.
bool serve_one(HelperServer& server, const SharedWindow& window) {
  std::array<TaskMessage, kGroupTasksMax> messages;
  Descriptor file(-1);
  const ReceivedMessages received = receive_messages<TaskMessage>(kHelperSocket, messages, &file);
  if (received.what != Received::kMessage) return false;
  std::array<HelperTask, kGroupTasksMax> tasks;
  WindowPlaces places(window.bytes());
  for (std::size_t i = 0; i < received.count; ++i) {
    const auto input = places.take(messages[i].input_bytes);
    if (!input) return false;
    tasks[i] = {.kind = messages[i].kind, .numbers = messages[i].numbers, .input = *input};
  }
  if (places.rest().empty()) return false;
  tasks[0].file = file.release();
  std::array<AnswerMessage, kGroupTasksMax> room;
  const std::span<AnswerMessage> answers =
      answer_group(server, std::span(tasks).first(received.count), places, room);
  if (tasks[0].file >= 0) ::close(tasks[0].file);
  return send_bytes(kHelperSocket, bytes_of(answers));
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
  if (!send_bytes(kHelperSocket, bytes_of(std::span(&ready, 1))) || !confined) return kFailedExit;
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
