#include <filesystem>
#include <string>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/report/console.hpp"
#include "core/prototxt.hpp"
#include "main/commands.hpp"
#include "main/program_options.hpp"
#include "tools/net_graph.hpp"
#include "tools/picture.hpp"

namespace speedo {

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
  if (ending.size() < 2) {
    return usage_error("'" + output +
                       "' has no ending: .dot, .svg, .png or .pdf says what to draw");
  }
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
