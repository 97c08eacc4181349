// One helper: what it can do, what ends it, and that nothing of it is left.

#include <fcntl.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "sandbox/helper_support.hpp"
#include "support/child_processes.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {
namespace {

TEST_CASE("a helper answers task after task, of any size that fits") {
  HelperStarter starter;
  const auto helper = started(starter);
  for (const std::size_t bytes : {0U, 1U, 4095U, 4096U, 4097U, 15U << 20U}) {
    std::string input(bytes, 'a');
    if (!input.empty()) input.front() = 'z';
    const HelperOutcome outcome = helper->run(deed(Deed::kReverse, 7, input));
    REQUIRE(outcome.reply);
    CHECK(outcome.reply->numbers[0] == 7);
    CHECK(text_of(*outcome.reply) == std::string(input.rbegin(), input.rend()));
    helper->shrink();
  }
  const std::string much(helper->window_bytes(), 'x');
  const HelperOutcome refused = helper->run(deed(Deed::kReverse, 0, much));
  REQUIRE_FALSE(refused.reply);
  CHECK_FALSE(refused.end);
  CHECK(refused.reply.error().message.find("--parser-memory") != std::string::npos);
}

TEST_CASE("a helper has two files, no variables, and what it is given") {
  ::setenv("SPEEDO_SECRET", "swordfish", 1);
  HelperStarter starter;
  const auto helper = started(starter);
  // Beside its two those that lead nowhere.
  CHECK(text_of(*helper->run(deed(Deed::kTell)).reply) == "5 0");
  const TempDir folder;
  std::ofstream(folder / "f") << "given";
  const Descriptor file(::open((folder / "f").c_str(), O_RDONLY | O_CLOEXEC));
  HelperTask reading = deed(Deed::kReadFile);
  reading.file = file.get();
  // More often than it may have files open.
  for (int i = 0; i < 40; ++i) CHECK(text_of(*helper->run(reading).reply) == "given");
  ::unsetenv("SPEEDO_SECRET");
}

TEST_CASE("a helper that oversteps what it may do is ended by the kernel") {
  HelperStarter starter;
  for (const Deed what : {Deed::kOpen, Deed::kSocket, Deed::kExecute, Deed::kFork, Deed::kSignal,
                          Deed::kSignalThread, Deed::kBreakPage, Deed::kRunnableMemory,
                          Deed::kRunnableAgain, Deed::kUnlimit, Deed::kTruncate}) {
    INFO("deed " << static_cast<int>(what));
    const auto helper = started(starter);
    const HelperOutcome outcome = helper->run(deed(what));
    REQUIRE(outcome.end);
    CHECK(outcome.end->signal == SIGSYS);
    CHECK_FALSE(outcome.end->untouched);
    CHECK_FALSE(outcome.reply);
  }
}

TEST_CASE("a helper's crash, silence and hanging up are told apart") {
  HelperStarter starter;
  const HelperOutcome crashed = started(starter)->run(deed(Deed::kCrash));
  REQUIRE(crashed.end);
  CHECK(crashed.end->signal == SIGSEGV);
  CHECK(to_string(*crashed.end) == "SIGSEGV");
  HelperOptions hasty = helper_options();
  hasty.patience = std::chrono::milliseconds(2000);
  const HelperOutcome hung = started(starter, hasty)->run(deed(Deed::kHang));
  REQUIRE(hung.end);
  CHECK(hung.end->too_slow);
  // It goes on computing, and is ended nevertheless.
  const HelperOutcome gone = started(starter)->run(deed(Deed::kHangUp));
  REQUIRE(gone.end);
  CHECK(gone.end->signal == SIGKILL);
  CHECK_FALSE(gone.end->too_slow);
}

#ifndef SPEEDO_SANITIZED
TEST_CASE("a helper has no more memory than it may, and lives to say so") {
  HelperStarter starter;
  const auto helper = started(starter);
  const std::int64_t half = std::int64_t{32} << 20U;
  CHECK(helper->run(deed(Deed::kTakeMemory, half / 2)).reply);
  const HelperOutcome refused = helper->run(deed(Deed::kTakeMemory, 2 * half));
  REQUIRE_FALSE(refused.reply);
  CHECK_FALSE(refused.end);
  CHECK(refused.reply.error().code == ErrorCode::kData);
  CHECK(refused.reply.error().message.find("needs more memory") != std::string::npos);
  CHECK(helper->run(deed(Deed::kReverse)).reply);
}
#endif

TEST_CASE("what a helper says is not believed") {
  HelperStarter starter;
  const auto helper = started(starter);
  const HelperOutcome failed = helper->run(deed(Deed::kFail));
  REQUIRE_FALSE(failed.reply);
  CHECK(failed.reply.error().message == "bad ?[2J thing?\xc2?!");
  // It is about the input, whatever the helper says.
  CHECK(failed.reply.error().code == ErrorCode::kData);
  const HelperOutcome lied = helper->run(deed(Deed::kLie));
  REQUIRE(lied.end);
  CHECK_FALSE(lied.reply);
}

TEST_CASE("a helper that was ended while it waited has not touched its next task") {
  HelperStarter starter;
  const auto helper = started(starter);
  const std::vector<pid_t> found = children_of(::getpid(), kHelperName);
  REQUIRE(found.size() == 1);
  ::kill(found[0], SIGKILL);
  // Its socket is closed a moment later.
  HelperOutcome outcome = helper->run(deed(Deed::kReverse));
  REQUIRE(outcome.end);
  CHECK(outcome.end->signal == SIGKILL);
}

TEST_CASE("a helper ends with the thread that started it, though it computes") {
  auto starter = std::make_unique<HelperStarter>();
  const auto helper = started(*starter);
  starter.reset();
  const HelperOutcome outcome = helper->run(deed(Deed::kHang));
  REQUIRE(outcome.end);
  CHECK(outcome.end->signal == SIGKILL);
}

TEST_CASE("signals of a terminal do not reach a helper") {
  HelperStarter starter;
  const auto helper = started(starter);
  const pid_t child = children_of(::getpid(), kHelperName).at(0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::kill(child, signal);
  CHECK(helper->run(deed(Deed::kReverse)).reply);
}

TEST_CASE("programs that are no helpers are errors, and nothing of any is left") {
  const std::size_t files = open_descriptors();
  {
    HelperStarter starter;
    HelperOptions options = helper_options();
    for (int i = 0; i < 3; ++i) started(starter)->run(deed(Deed::kCrash));
    started(starter);
    options.program = "/no/such/helper";
    const auto missing = HelperProcess::start(options, starter);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(missing.error().message.find("/no/such/helper") != std::string::npos);
    options.program = "/bin/true";
    const auto other = HelperProcess::start(options, starter);
    REQUIRE_FALSE(other);
    CHECK(other.error().code == ErrorCode::kUnavailable);
  }
  CHECK(open_descriptors() == files);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

}  // namespace
}  // namespace speedo::test
