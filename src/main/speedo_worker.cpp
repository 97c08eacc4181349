#include "cli/process.hpp"
#include "main/node_programs.hpp"

int main(int argc, char** argv) {
  return speedo::run_process("speedo-worker", argc, argv, speedo::worker_program);
}
