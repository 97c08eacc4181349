// With SPEEDO_TEST_PARSERS all tests of this program read images and HDF5 files in parsers.

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "parser_support.hpp"

namespace speedo {
namespace {

class ParsersForTests {
 public:
  ParsersForTests() {
    if (std::getenv("SPEEDO_TEST_PARSERS") == nullptr) return;
    parsers_ = std::make_unique<ParserProcesses>(parser_options(4096));
  }
  ~ParsersForTests() {
    if (parsers_ == nullptr || parsers_->totals().started > 0) return;
    std::fputs("no test has read anything in a parser\n", stderr);
    std::abort();
  }

 private:
  std::unique_ptr<ParserProcesses> parsers_;
};

const ParsersForTests parsers_for_tests;

}  // namespace
}  // namespace speedo
