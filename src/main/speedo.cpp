#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/exit_code.hpp"

int main(int argc, char** argv) {
  speedo::set_up_process();
  return speedo::speedo_main(speedo::arguments_of(argc, argv));
}
