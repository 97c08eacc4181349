#include "cli/process.hpp"
#include "main/node_programs.hpp"

int main(int argc, char** argv) {
  return speedo::run_process("speedo-master", argc, argv, speedo::master_program);
}
