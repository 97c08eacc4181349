// speedo-parser with a fault: it crashes on an image that ends with "brittle".

#include <csignal>
#include <string_view>

#include "data/image/image_task.hpp"
#include "data/parser/parser_server.hpp"

namespace speedo::test {
namespace {

class BrittleParser : public ParserServer {
 public:
  Result<HelperAnswer> serve(HelperTask& task, std::span<std::byte> output) override {
    const std::string_view input(reinterpret_cast<const char*>(task.input.data()),
                                 task.input.size());
    if (task.kind == kImageTask && input.ends_with("brittle")) ::raise(SIGSEGV);
    return ParserServer::serve(task, output);
  }
};

}  // namespace
}  // namespace speedo::test

int main(int argc, char** argv) {
  // A sanitizer's handler would want more than a parser may.
  std::signal(SIGSEGV, SIG_DFL);
  speedo::test::BrittleParser server;
  return speedo::run_helper(argc, argv, server);
}
