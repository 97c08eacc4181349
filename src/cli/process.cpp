#include "cli/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "base/patient_output.hpp"
#include "cli/exit_code.hpp"
#include "cli/out_of_room.hpp"
#include "cli/uncaught.hpp"

namespace speedo {

namespace {

// A file that is opened later must not get the number of one that is closed: it would be taken for
// standard input or output by whatever this process starts.
void open_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", O_RDWR) < 0) return;  // It gets the lowest free number: this one.
  }
}

// What a program was left with by whoever started it: blocked, a signal that is to end it never
// comes; ignored, the end of what it starts is never told.
void settle_signals() {
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGXFSZ, SIG_IGN);  // A file that grows beyond the limit is an error of its write.
  sigset_t heard;
  sigemptyset(&heard);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&heard, signal);
  ::sigprocmask(SIG_UNBLOCK, &heard, nullptr);
}

// `code`, or that of a result that could not be written.
int flush_result(const char* program, int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || code != 0) return code;
  return report_failure(program, {ErrorCode::kCannotWrite,
                                  "the result could not be written to standard output: is the "
                                  "disk full, or the reader gone?"});
}

std::vector<std::string> arguments_of(int argc, char** argv) { return {argv + 1, argv + argc}; }

}  // namespace

int run_process(const char* program, int argc, char** argv, const ProgramBody& body) {
  open_standard_files();
  settle_signals();
  set_up_out_of_room(program);
  set_up_uncaught();
  const int code = run_program(program, [&] {
    const auto secrets = take_secrets(argc, argv);
    if (!secrets) return report_failure(program, secrets.error());
    const auto ended = body(arguments_of(argc, argv), *secrets);
    return ended ? *ended : report_failure(program, ended.error());
  });
  const int ended = flush_result(program, code);
  standard_error().flush();
  return ended;
}

}  // namespace speedo
