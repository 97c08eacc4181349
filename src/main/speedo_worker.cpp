#include "main/command_line.hpp"
#include "main/exit_code.hpp"
#include "main/node_programs.hpp"

int main(int argc, char** argv) {
  speedo::set_up_process();
  const auto done = speedo::worker_program(speedo::arguments_of(argc, argv));
  return done ? 0 : speedo::report_failure("speedo-worker", done.error());
}
