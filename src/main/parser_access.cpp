#include "main/parser_access.hpp"

#include <memory>

#include "cli/flags/parser_flags.hpp"

namespace speedo {

void employ_parsers(const OptionValues& values) {
  static std::unique_ptr<ParserProcesses> parsers;  // the process's, to its end
  parsers.reset();
  parsers = std::make_unique<ParserProcesses>(to_options(parser_flags(values)));
}

}  // namespace speedo
