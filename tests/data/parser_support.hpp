#pragma once

#include <string>

#include "data/parser/parser_processes.hpp"
#include "data_support.hpp"

namespace speedo {

// The program of this build.
inline ParserOptions parser_options(std::uint64_t mebibytes = 512) {
  return {
      .use = ParserUse::kOn, .memory_bytes = mebibytes << 20U, .program = SPEEDO_PARSER_PROGRAM};
}

// The one that crashes on images that end with this.
inline const std::string kBrittle = "brittle";
inline ParserOptions brittle_options() {
  ParserOptions options = parser_options();
  options.program = SPEEDO_BRITTLE_PARSER;
  return options;
}

}  // namespace speedo
