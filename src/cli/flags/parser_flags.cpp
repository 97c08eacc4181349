#include "cli/flags/parser_flags.hpp"

namespace speedo {

ParserFlags parser_flags(const OptionValues& values) {
  ParserFlags flags;
  values.get("parser-process", flags.process);
  values.get("parser-memory", flags.memory_mib);
  return flags;
}

ParserOptions to_options(const ParserFlags& flags) {
  ParserOptions options;
  if (flags.process == "on") options.use = ParserUse::kOn;
  if (flags.process == "off") options.use = ParserUse::kOff;
  options.memory_bytes = flags.memory_mib << 20U;
  return options;
}

std::vector<std::string> to_arguments(const ParserFlags& flags) {
  std::vector<std::string> arguments;
  if (flags.process != kParserProcess) arguments.push_back("--parser-process=" + flags.process);
  if (flags.memory_mib != kParserMiB) {
    arguments.push_back("--parser-memory=" + std::to_string(flags.memory_mib));
  }
  return arguments;
}

}  // namespace speedo
