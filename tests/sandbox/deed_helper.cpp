// A helper program that does what helpers must not be able to do.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>

#include "sandbox/deeds.hpp"
#include "sandbox/helper_message.hpp"
#include "sandbox/helper_server.hpp"
#include "sandbox/helper_start.hpp"
#include "support/child_processes.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;

void work(std::int64_t milliseconds) {
  const Instant end = steady_clock().now() + std::chrono::milliseconds(milliseconds);
  while (steady_clock().now() < end) {
  }
}

std::size_t count_variables() {
  std::size_t count = 0;
  while (environ[count] != nullptr) ++count;
  return count;
}

bool take_memory(std::int64_t bytes) {
  std::vector<std::vector<char>> pieces;
  try {
    for (std::int64_t taken = 0; taken < bytes; taken += static_cast<std::int64_t>(kPieceBytes)) {
      pieces.emplace_back(kPieceBytes, 'x');
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void execute() {
  char* none[] = {nullptr};
  ::execve("/bin/true", none, none);
}

// Each asks the kernel itself: what the C library does around it may differ.
void overstep(Deed deed, pid_t parent) {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  switch (deed) {
    case Deed::kOpen:
      ::syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
      return;
    case Deed::kSocket:
      ::socket(AF_INET, SOCK_STREAM, 0);
      return;
    case Deed::kExecute:
      return execute();
    case Deed::kFork:
      ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
      return;
    case Deed::kSignal:
      ::syscall(SYS_kill, 1, 0);
      return;
    case Deed::kSignalThread:
      ::syscall(SYS_tgkill, parent, parent, 0);
      return;
    case Deed::kBreakPage:
      ::syscall(SYS_madvise, nullptr, 0, MADV_HWPOISON);
      return;
    case Deed::kRunnableMemory:
      ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      return;
    case Deed::kRunnableAgain:
      ::syscall(SYS_mprotect,
                ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                4096, PROT_READ | PROT_EXEC);
      return;
    case Deed::kUnlimit:
      ::setrlimit(RLIMIT_AS, &unlimited);
      return;
    default:
      ::syscall(SYS_ftruncate, kHelperWindow, 0);
  }
}

// As it is, instead of what a helper would say.
void say(std::span<const AnswerMessage> answers, std::size_t bytes) {
  send_bytes(kHelperSocket, std::as_bytes(answers).first(bytes));
  work(3600000);
}

void answer_wrongly(Deed deed, std::size_t room) {
  constexpr std::size_t kOne = sizeof(AnswerMessage);
  AnswerMessage answers[kGroupTasksMax] = {};
  switch (deed) {
    case Deed::kAnswerMany:
      return say(answers, kGroupTasksMax * kOne);
    case Deed::kAnswerEmpty:
      return say(answers, 0);
    case Deed::kAnswerPart:
      return say(answers, kOne / 2);
    case Deed::kAnswerHuge:
      answers[0].output_bytes = answers[1].output_bytes = room / 4 * 3;
      return say(answers, 2 * kOne);
    case Deed::kAnswerWrap:
      answers[0].output_bytes = 64;
      answers[1].output_bytes = UINT64_MAX - 63;
      return say(answers, 2 * kOne);
    default:
      answers[1].code = static_cast<std::uint32_t>(ErrorCode::kFull) + 1;
      return say(answers, 3 * kOne);
  }
}

class DeedServer : public HelperServer {
 public:
  void prepare() override {
    // One of the descriptors is that of the folder which is listed.
    told_ = std::to_string(open_descriptors() - 1) + " " + std::to_string(count_variables());
  }

  Result<HelperAnswer> serve(HelperTask& task, std::span<std::byte> output) override {
    switch (static_cast<Deed>(task.kind)) {
      case Deed::kWork:
        work(task.numbers[0]);
        [[fallthrough]];
      case Deed::kReverse:
        if (task.input.size() > output.size()) return Error{ErrorCode::kFull, "no room"};
        std::reverse_copy(task.input.begin(), task.input.end(), output.begin());
        return HelperAnswer{task.numbers, task.input.size()};
      case Deed::kTell:
        std::memcpy(output.data(), told_.data(), told_.size());
        return HelperAnswer{{}, told_.size()};
      case Deed::kReadFile: {
        const ssize_t got = ::pread(task.file, output.data(), output.size(), 0);
        return HelperAnswer{{}, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
      }
      case Deed::kFill: {
        const auto bytes = static_cast<std::size_t>(task.numbers[0]);
        if (bytes > output.size()) return Error{ErrorCode::kFull, "no room"};
        std::fill_n(output.begin(), bytes, std::byte{'f'});
        return HelperAnswer{{}, bytes};
      }
      case Deed::kFail:
        return Error{ErrorCode::kInternal, "bad \x1b[2J thing\n\xc2\x9b!"};
      case Deed::kTakeMemory:
        if (!take_memory(task.numbers[0])) return Error{ErrorCode::kFull, "no memory"};
        return HelperAnswer{};
      case Deed::kLie:
        return HelperAnswer{{}, SIZE_MAX};
      case Deed::kAnswerMany:
      case Deed::kAnswerEmpty:
      case Deed::kAnswerPart:
      case Deed::kAnswerHuge:
      case Deed::kAnswerWrap:
      case Deed::kAnswerError:
        answer_wrongly(static_cast<Deed>(task.kind), output.size());
        return HelperAnswer{};
      case Deed::kCrash:
        ::raise(SIGSEGV);
        return HelperAnswer{};
      case Deed::kHang:
        work(3600000);
        return HelperAnswer{};
      case Deed::kHangUp:
        ::close(kHelperSocket);
        work(3600000);
        return HelperAnswer{};
      default:
        overstep(static_cast<Deed>(task.kind), parent_);
        return HelperAnswer{};
    }
  }

 private:
  std::string told_;
  const pid_t parent_ = ::getppid();  // A system call, which it may not make later.
};

}  // namespace
}  // namespace speedo::test

int main(int argc, char** argv) {
  // A sanitizer's handler would want more than a helper may.
  std::signal(SIGSEGV, SIG_DFL);
  speedo::test::DeedServer server;
  return speedo::run_helper(argc, argv, server);
}
