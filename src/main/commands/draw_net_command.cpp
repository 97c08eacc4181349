#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/kept_inputs.hpp"
#include "cli/report/console.hpp"
#include "core/prototxt.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"
#include "tools/net_graph.hpp"
#include "tools/picture.hpp"

namespace speedo {

namespace {

// The first two are the graph as text; Graphviz makes the others, whatever it was built with.
constexpr auto kEndings = std::to_array<std::string_view>(
    {".dot", ".gv", ".svg", ".svgz", ".png", ".pdf", ".ps", ".eps", ".jpg", ".jpeg", ".gif"});

}  // namespace

Result<int> draw_net_command(const CommandLine& line) {
  OptionValues values(Program::kDrawNet);
  SPEEDO_ASSIGN(const Parsed parsed,
                read_program_options(from_gflags(line.arguments, values.program()), values));
  if (parsed == Parsed::kDone) return 0;
  std::string input, output, phase;
  NetGraphOptions options;
  values.get("input", input);
  values.get("output", output);
  values.get("rankdir", options.direction);
  values.get("phase", phase);
  values.get("display-lrm", options.learning_rates);
  if (phase == "TRAIN") options.phase = Phase::kTrain;
  if (phase == "TEST") options.phase = Phase::kTest;

  set_up_console(false);
  const std::string ending = std::filesystem::path(output).extension().string();
  if (std::ranges::find(kEndings, ending) == kEndings.end()) {
    return usage_error(fmt::format("'{}' ends in none of {}: the ending says what to draw", output,
                                   fmt::join(kEndings, ", ")));
  }
  SPEEDO_TRY(check_target(output, {input}, "the drawing " + output));
  SPEEDO_ASSIGN(const caffe::NetParameter net, read_net_prototxt(input));
  const std::string graph = net_graph(net, options);
  SPEEDO_INFO("Drawing net to {}", output);
  if (ending == ".dot" || ending == ".gv") {
    SPEEDO_TRY(write_file_atomically(output, graph));
  } else {
    SPEEDO_TRY(draw_picture(graph, output));
  }
  return 0;
}

}  // namespace speedo
