#include "data/parser/parser_server.hpp"

int main(int argc, char** argv) {
  speedo::ParserServer server;
  return speedo::run_helper(argc, argv, server);
}
