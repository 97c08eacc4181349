#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Option;
}

namespace speedo {

// What a flag's value must be, and what the help calls it. Each returns the option.

// A whole number of at least `min`, at most 2^31 - 1 (Caffe's own counters are 32 bits wide).
CLI::Option* takes_count(CLI::Option* option, std::int64_t min);
// `what_max`, if given, says in the error what `max` is.
CLI::Option* takes_range(CLI::Option* option, std::int64_t min, std::int64_t max,
                         const std::string& what_max = "");
CLI::Option* takes_port(CLI::Option* option);
CLI::Option* takes_number(CLI::Option* option);
// Finite and at least 0.
CLI::Option* takes_amount(CLI::Option* option);
CLI::Option* takes_file(CLI::Option* option);
CLI::Option* takes_one_of(CLI::Option* option, const std::vector<std::string>& words);
// Anything else; `kind` stands for it in the help.
CLI::Option* takes(CLI::Option* option, const char* kind);

}  // namespace speedo
