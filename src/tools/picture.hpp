#pragma once

#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// Draws a graph in Graphviz' language by its program `dot`, in the format that the output's ending
// names (svg, png, pdf). Requires: the process has no threads yet. Errors: kNotFound without `dot`,
// naming the remedy; kCannotWrite.
Result<void> draw_picture(const std::string& graph, const std::filesystem::path& output);

}  // namespace speedo
