#include "main/command_line.hpp"
#include "main/exit_code.hpp"
#include "main/node_programs.hpp"
#include "main/process.hpp"
#include "main/uncaught.hpp"

int main(int argc, char** argv) {
  constexpr const char* kProgram = "speedo-worker";
  speedo::set_up_process(kProgram);
  const int code = speedo::run_program(kProgram, [&] {
    const auto secrets = speedo::take_secrets(argc, argv);
    if (!secrets) return speedo::report_failure(kProgram, secrets.error());
    const auto done = speedo::worker_program(speedo::arguments_of(argc, argv), *secrets);
    return done ? 0 : speedo::report_failure(kProgram, done.error());
  });
  return speedo::end_process(kProgram, code);
}
