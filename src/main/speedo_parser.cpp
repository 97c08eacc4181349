#include <cstdio>
#include <string_view>

#include "data/parser/parser_server.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts("speedo " SPEEDO_VERSION);
    return 0;
  }
  speedo::ParserServer server;
  return speedo::run_helper(argc, argv, server);
}
