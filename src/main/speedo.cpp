#include "cli/process.hpp"
#include "main/commands.hpp"

int main(int argc, char** argv) {
  // No command of it opens anybody's Redis; a password is not passed on to what it starts.
  return speedo::run_process("speedo", argc, argv, [](const auto& arguments, const auto&) {
    return speedo::speedo_main(arguments);
  });
}
