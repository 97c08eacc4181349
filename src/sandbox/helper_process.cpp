#include "sandbox/helper_process.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <speedo/base/assert.hpp>

#include "base/shown_text.hpp"
#include "sandbox/helper_message.hpp"

namespace speedo {

namespace {

constexpr std::size_t kMessageTextBytesMax = 4096;

// What stays of the window between tasks.
constexpr std::size_t kKeptBytes = std::size_t{16} << 20U;

std::string shown(std::span<const std::byte> output) {
  const auto text = output.first(std::min(output.size(), kMessageTextBytesMax));
  return shown_text({reinterpret_cast<const char*>(text.data()), text.size()});
}

// Only what is about the input: it may not end a training for another reason.
GroupOutcome refused(const AnswerMessage& answer, const HelperTask& task,
                     std::span<const std::byte> output) {
  const auto is = [&](ErrorCode code) {
    return answer.code == static_cast<std::uint32_t>(code) + 1;
  };
  if (is(ErrorCode::kFull)) {
    return {.replies = {Error{ErrorCode::kData,
                              std::string(task.subject) +
                                  " needs more memory than a parser process may have: raise "
                                  "--parser-memory"}},
            .lacked_memory = true};
  }
  const ErrorCode code = is(ErrorCode::kUnsupported) ? ErrorCode::kUnsupported : ErrorCode::kData;
  return {.replies = {Error{code, shown(output)}}};
}

void limit_waiting(int socket, std::chrono::milliseconds patience) {
  const timeval time{patience.count() / 1000, patience.count() % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

Error too_large(const HelperTask& task) {
  return Error{ErrorCode::kData,
               std::string(task.subject) + " has " + std::to_string(task.input.size()) +
                   " bytes, more than a parser process takes: raise --parser-memory"};
}

using TaskMessages = std::array<TaskMessage, kGroupTasksMax>;

// The group's first tasks that the window holds, and has room for an output behind.
std::span<TaskMessage> place_inputs(std::span<const HelperTask> group, WindowPlaces& places,
                                    TaskMessages& messages) {
  std::size_t placed = 0;
  for (const HelperTask& task : group) {
    WindowPlaces behind = places;
    const auto place = behind.take(task.input.size());
    if (!place || behind.rest().empty()) break;
    if (!task.input.empty()) std::memcpy(place->data(), task.input.data(), task.input.size());
    messages[placed++] = {
        .kind = task.kind, .numbers = task.numbers, .input_bytes = task.input.size()};
    places = behind;
  }
  return std::span(messages).first(placed);
}

}  // namespace

std::size_t group_size(std::span<const HelperTask> tasks) {
  SPEEDO_ASSERT(!tasks.empty());
  std::size_t count = 0, bytes = 0;
  for (const HelperTask& task : tasks.first(std::min(tasks.size(), kGroupTasksMax))) {
    bytes += task.input.size();
    if (count > 0 && (task.file >= 0 || bytes > kGroupInputBytes)) break;
    ++count;
    if (task.file >= 0) break;
  }
  return count;
}

std::string to_string(const HelperEnd& end) {
  if (end.too_slow) return "no answer in time";
  if (end.signal == SIGSYS) return "SIGSYS: it wanted more than to compute";
  if (end.signal == 0) return "exit code " + std::to_string(end.exit_code);
  const char* const name = ::sigabbrev_np(end.signal);
  return name == nullptr ? "signal " + std::to_string(end.signal) : std::string("SIG") + name;
}

HelperProcess::HelperProcess(SharedWindow window, Descriptor socket)
    : window_(std::move(window)), socket_(std::move(socket)) {}

Result<std::unique_ptr<HelperProcess>> HelperProcess::start(const HelperOptions& options,
                                                            HelperStarter& starter) {
  const auto half = static_cast<std::size_t>(options.memory_bytes / 2);
  SPEEDO_ASSIGN(SharedWindow window, SharedWindow::create(half));
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{ErrorCode::kUnavailable,
                 std::string("no socket for a helper process: ") + std::strerror(errno)};
  }
  Descriptor theirs(ends[1]);
  std::unique_ptr<HelperProcess> helper(new HelperProcess(std::move(window), Descriptor(ends[0])));
  SPEEDO_ASSIGN(helper->pid_, starter.start({.program = options.program,
                                             .memory_bytes = half,
                                             .window_bytes = half,
                                             .socket = theirs.get(),
                                             .window = helper->window_.descriptor()}));
  theirs = Descriptor(-1);  // else its end would not show
  limit_waiting(helper->socket_.get(), options.patience);
  SPEEDO_TRY(helper->wait_until_ready());
  return helper;
}

HelperProcess::~HelperProcess() {
  if (pid_ > 0) end();
}

Result<void> HelperProcess::wait_until_ready() {
  AnswerMessage ready;
  const Received received = receive_messages<AnswerMessage>(socket_.get(), {&ready, 1}).what;
  if (received == Received::kMessage && ready.code == 0) return {};
  const std::size_t bytes = std::min<std::size_t>(ready.output_bytes, kMessageTextBytesMax);
  std::string why = received == Received::kMessage ? shown(window_.bytes().first(bytes)) : "";
  if (received != Received::kMessage) {
    HelperEnd how = end();
    how.too_slow = received == Received::kTimeout;
    why = to_string(how);
  }
  return Error{ErrorCode::kUnavailable, "a helper process does not start: " + why};
}

// The end of a helper that is gone, or that shall be.
HelperEnd HelperProcess::end() {
  int status = 0;
  pid_t gone = ::waitpid(pid_, &status, WNOHANG);
  if (gone == 0) {
    // It may have hung up and gone on.
    ::kill(pid_, SIGKILL);
    do {
      gone = ::waitpid(pid_, &status, 0);
    } while (gone < 0 && errno == EINTR);
  }
  HelperEnd how;
  if (gone == pid_ && WIFSIGNALED(status)) how.signal = WTERMSIG(status);
  if (gone == pid_ && WIFEXITED(status)) how.exit_code = WEXITSTATUS(status);
  pid_ = -1;
  return how;
}

HelperOutcome HelperProcess::run(const HelperTask& task) {
  GroupOutcome outcome = run_group(std::span(&task, 1));
  if (outcome.end) {
    return {Error{ErrorCode::kUnavailable,
                  "the helper process ended: " + to_string(*outcome.end)},
            outcome.end};
  }
  return {std::move(outcome.replies.front()), std::nullopt, outcome.lacked_memory};
}

GroupOutcome HelperProcess::run_group(std::span<const HelperTask> group) {
  SPEEDO_ASSERT(pid_ > 0 && group_size(group) == group.size());
  WindowPlaces places(window_.bytes());
  TaskMessages room;
  const std::span<TaskMessage> messages = place_inputs(group, places, room);
  if (messages.empty()) return {.replies = {too_large(group.front())}};
  if (!send_bytes(socket_.get(), bytes_of(messages), group.front().file)) {
    HelperEnd how = end();
    how.untouched = true;
    return {.end = how};
  }
  return receive(group.first(messages.size()), places);
}

// All that is believed is copied out of the socket first, and sizes give places that lie in the
// window or are none.
GroupOutcome HelperProcess::receive(std::span<const HelperTask> group, WindowPlaces places) {
  std::array<AnswerMessage, kGroupTasksMax> room;
  const std::span<AnswerMessage> answers = std::span(room).first(group.size());
  const ReceivedMessages received = receive_messages(socket_.get(), answers);
  GroupOutcome outcome;
  bool fits = received.what == Received::kMessage;
  for (std::size_t i = 0; fits && i < received.count; ++i) {
    const auto output = places.take(answers[i].output_bytes);
    fits = output.has_value();
    if (!fits) break;
    if (answers[i].code != 0) {
      if (group.size() == 1) outcome = refused(answers[i], group[i], *output);
      break;
    }
    outcome.replies.emplace_back(HelperReply{answers[i].numbers, *output});
  }
  used_ = std::max(used_, window_.bytes().size() - places.rest().size());
  if (fits) return outcome;
  HelperEnd how = end();
  how.too_slow = received.what == Received::kTimeout;
  return {.end = how};
}

void HelperProcess::shrink() {
  if (used_ <= kKeptBytes) return;
  window_.trim(kKeptBytes);
  used_ = kKeptBytes;
}

}  // namespace speedo
