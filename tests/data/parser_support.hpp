#pragma once

#include <string>

#include "data/parser/parser_processes.hpp"
#include "data_support.hpp"
#include "jpeg_support.hpp"

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

// A JPEG of 40 x 40 pixels of one gray.
inline std::string gray_jpeg(int gray) {
  return make_jpeg(40, 1, std::vector<std::uint8_t>(40, static_cast<std::uint8_t>(gray)),
                   [](auto&) {});
}

// A list of them, each of its own gray, of which one may be brittle.
inline void write_gray_list(const TempDir& folder, int count, int brittle = -1) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + ".jpg";
    write_bytes(folder / name, i == brittle ? gray_jpeg(i) + kBrittle : gray_jpeg(i));
    list += name + " " + std::to_string(i) + "\n";
  }
  write_bytes(folder / "list.txt", list);
}

}  // namespace speedo
