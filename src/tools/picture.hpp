#pragma once

#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// Draws a graph in Graphviz' language by its program `dot`, in the format that the output's ending
// names (svg, png, pdf). Requires: the process has no threads yet. Errors: kNotFound without `dot`,
// naming the remedy; kCannotWrite.
Result<void> draw_picture(const std::string& graph, const std::filesystem::path& output);

// Writes a picture in SVG as it is, or as PNG by the program `rsvg-convert`, as the output's ending
// says. Requires: the process has no threads yet. Errors: kUsage for another ending; kNotFound
// without rsvg-convert, naming the remedy; kCannotWrite.
Result<void> write_picture(const std::string& svg, const std::filesystem::path& output);

}  // namespace speedo
