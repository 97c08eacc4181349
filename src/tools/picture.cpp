#include "tools/picture.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <speedo/base/file.hpp>

#include "local/children.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kDotPoll{100};
constexpr std::size_t kDotSaysBytesMax = 4096;

Error without_dot() {
  return {ErrorCode::kNotFound,
          "Graphviz' program `dot` is not installed: install the package graphviz, or let the "
          "output end in .dot for the graph as text"};
}

Error failed(const fs::path& output, const std::string& said) {
  return {ErrorCode::kCannotWrite, fmt::format("dot could not write '{}': {}", output.string(),
                                               said.substr(0, said.find('\n')))};
}

}  // namespace

Result<void> draw_picture(const std::string& graph, const fs::path& output) {
  std::error_code code;
  const fs::path temporary = fs::temp_directory_path(code);
  if (code) {
    return Error{ErrorCode::kCannotWrite, "no folder for temporary files (TMPDIR): " +
                                              code.message()};
  }
  std::string folder = (temporary / "speedo-graph-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return Error{ErrorCode::kCannotWrite, fmt::format("cannot make the temporary folder '{}': {}",
                                                      folder, std::strerror(errno))};
  }
  SPEEDO_ASSIGN(Guardian guardian, Guardian::create(folder));
  const fs::path text = fs::path(folder) / "graph.dot", said = fs::path(folder) / "said";
  SPEEDO_TRY(write_file_atomically(text, graph));
  Children children(std::move(guardian));
  ChildCommand command;
  command.arguments = {"dot", "-T" + output.extension().string().substr(1),
                       "-o" + fs::absolute(output).string(), text.string()};
  command.output = said;
  const auto started = children.start(command);
  if (!started)
    return started.error().code == ErrorCode::kNotFound ? without_dot() : started.error();
  std::optional<ChildEnd> end;
  while (!end) end = children.wait(kDotPoll);
  if (end->exit_code == 0) return {};
  const auto words = read_file(said, kDotSaysBytesMax);
  return failed(output, words ? *words : to_string(*end));
}

}  // namespace speedo
