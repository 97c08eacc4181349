#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace CLI {
class App;
}

namespace speedo {

// What a command does after its arguments were read.
enum class Parsed {
  kRun,   // go on
  kDone,  // help or version was printed
};

// Reads `arguments` (without the program's name) into the variables bound to `app`, accepting every
// spelling of a flag (arguments.hpp), --help and --version. Error: kUsage.
// `normalized`, if given, receives the flags in their canonical spelling.
Result<Parsed> parse(CLI::App& app, const std::vector<std::string>& arguments,
                     std::vector<std::string>* normalized = nullptr);

// The same without --help, --version and an application's layout: flags that stand elsewhere than
// on a command line.
Result<void> parse_flags(CLI::App& app, const std::vector<std::string>& arguments);

// argv without the program's name.
std::vector<std::string> arguments_of(int argc, char** argv);

std::string version();  // "speedo 0.1.0"

}  // namespace speedo
