#include "cli/process.hpp"
#include "main/commands.hpp"

int main(int argc, char** argv) {
  // A password is not passed on to what it starts.
  return speedo::run_process("speedo", argc, argv, [](const auto& arguments, const auto& secrets) {
    return speedo::speedo_main(arguments, secrets);
  });
}
