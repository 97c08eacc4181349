#include "main/process.hpp"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include "main/exit_code.hpp"
#include "main/out_of_room.hpp"
#include "main/uncaught.hpp"

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

}  // namespace

void set_up_process(const char* program) {
  open_standard_files();
  set_up_out_of_room(program);
  set_up_uncaught();
}

int end_process(const char* program, int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || code != 0) return code;
  return report_failure(program, {ErrorCode::kCannotWrite,
                                  "the result could not be written to standard output: is the "
                                  "disk full, or the reader gone?"});
}

}  // namespace speedo
