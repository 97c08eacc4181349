#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/exit_code.hpp"
#include "main/process.hpp"
#include "main/process_secrets.hpp"
#include "main/uncaught.hpp"

int main(int argc, char** argv) {
  constexpr const char* kProgram = "speedo";
  speedo::set_up_process(kProgram);
  const int code = speedo::run_program(kProgram, [&] {
    // No command of it opens anybody's Redis; a password is not passed on to what it starts.
    const auto secrets = speedo::take_secrets(argc, argv);
    if (!secrets) return speedo::report_failure(kProgram, secrets.error());
    return speedo::speedo_main(speedo::arguments_of(argc, argv));
  });
  return speedo::end_process(kProgram, code);
}
