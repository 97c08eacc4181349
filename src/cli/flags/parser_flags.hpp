#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/option_values.hpp"
#include "data/parser/parser_processes.hpp"

namespace speedo {

inline constexpr const char* kParserProcess = "auto";
inline constexpr std::uint64_t kParserMiB = 2048;

// Where images and HDF5 files are read: --parser-process, --parser-memory.
struct ParserFlags {
  std::string process = kParserProcess;
  std::uint64_t memory_mib = kParserMiB;
};

ParserFlags parser_flags(const OptionValues& values);
ParserOptions to_options(const ParserFlags& flags);

// The flags as another of our programs takes them.
std::vector<std::string> to_arguments(const ParserFlags& flags);

}  // namespace speedo
