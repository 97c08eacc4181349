#include "tools/picture.hpp"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/file.hpp>

#include "local/children.hpp"
#include "local/temporary_folder.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPicturePoll{20};
constexpr std::size_t kSaidBytesMax = 4096;

// A program that makes a picture of a text.
struct Drawer {
  std::string program, input_name;
  std::string missing;  // what to say without it
};

const Drawer& dot() {
  static const Drawer drawer = {
      "dot", "graph.dot",
      "Graphviz' program `dot` is not installed: install the package graphviz, or let the "
      "output end in .dot for the graph as text"};
  return drawer;
}

const Drawer& rsvg_convert() {
  static const Drawer drawer = {
      "rsvg-convert", "picture.svg",
      "the program `rsvg-convert` is not installed: install the package librsvg2-bin, or let the "
      "output end in .svg"};
  return drawer;
}

// Runs the program with `flags` and the name of a file that holds `text`.
Result<void> run_drawer(const Drawer& drawer, std::vector<std::string> flags,
                        const std::string& text, const fs::path& output) {
  SPEEDO_ASSIGN(const fs::path folder, make_temporary_folder("speedo-picture"));
  SPEEDO_ASSIGN(Guardian guardian, Guardian::create(folder));
  const fs::path input = folder / drawer.input_name, said = folder / "said";
  SPEEDO_TRY(write_file_atomically(input, text));
  Children children(std::move(guardian));
  ChildCommand command;
  command.arguments = {drawer.program};
  command.arguments.insert(command.arguments.end(), flags.begin(), flags.end());
  command.arguments.push_back(input.string());
  command.output = said;
  if (auto started = children.start(command); !started) {
    if (started.error().code != ErrorCode::kNotFound) return std::move(started).error();
    return Error{ErrorCode::kNotFound, drawer.missing};
  }
  std::optional<ChildEnd> end;
  while (!end) end = children.wait(kPicturePoll);
  if (end->exit_code == 0) return {};
  const auto words = read_file(said, kSaidBytesMax);
  const std::string why = words ? *words : to_string(*end);
  return Error{ErrorCode::kCannotWrite,
               fmt::format("{} could not write '{}': {}", drawer.program, output.string(),
                           why.substr(0, why.find('\n')))};
}

}  // namespace

Result<void> draw_picture(const std::string& graph, const fs::path& output) {
  return run_drawer(
      dot(), {"-T" + output.extension().string().substr(1), "-o" + fs::absolute(output).string()},
      graph, output);
}

Result<void> write_picture(const std::string& svg, const fs::path& output) {
  const std::string ending = output.extension().string();
  if (ending == ".svg") return write_file_atomically(output, svg);
  if (ending == ".png") {
    return run_drawer(rsvg_convert(), {"-f", "png", "-o", fs::absolute(output).string()}, svg,
                      output);
  }
  return Error{
      ErrorCode::kUsage,
      fmt::format("'{}' ends in neither .svg nor .png, which says what to draw", output.string())};
}

}  // namespace speedo
