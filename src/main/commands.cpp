#include "main/commands.hpp"

#include <cstdio>

#include "cli/arguments.hpp"
#include "cli/options/read_options.hpp"
#include "cli/exit_code.hpp"

namespace speedo {

namespace {

void print_help(std::FILE* out) {
  std::fprintf(out, "%s: distributed training of Caffe nets\n\nusage: speedo COMMAND [FLAGS]\n\n",
               version().c_str());
  for (const CommandEntry& command : commands()) {
    std::fprintf(out, "  %-27s%s\n", command.name, command.summary);
  }
  std::fprintf(
      out,
      "\n`speedo COMMAND --help` lists the flags of a command. A cluster of several machines has\n"
      "programs of its own: speedo-master --help, speedo-worker --help.\n\n"
      "Example:\n"
      "  speedo run --solver examples/digits/digits_solver.prototxt --workers 3\n");
}

const CommandEntry* find(const std::string& name) {
  for (const CommandEntry& command : commands()) {
    if (squash(name) == squash(command.name)) return &command;
  }
  return nullptr;
}

Error unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands()) names.emplace_back(command.name);
  const std::string near = nearest(name, names);
  return {ErrorCode::kUsage, "unknown command '" + name + "'" +
                                 (near.empty() ? "" : ", did you mean " + near + "?") +
                                 " (speedo --help lists all commands)"};
}

}  // namespace

const std::vector<CommandEntry>& commands() {
  static const std::vector<CommandEntry> all = {
      {"run", "train on a cluster of this machine: Redis, a master and workers", run_command},
      {"launch", "train on machines that ssh reaches, by a hosts file", launch_command},
      {"train", "train or fine-tune in one process", train_command},
      {"test", "score a model", test_command},
      {"time", "measure a net, layer by layer", time_command},
      {"device_query", "list the GPUs that nets can be computed on", device_query_command},
      {"net", "show the shapes, parameters and memory of a net", net_command},
      {"convert", "make a database of MNIST, CIFAR or CSV files", convert_command},
      {"mean", "compute the mean image of a database", mean_command},
      {"convert_imageset", "make a database of a list of images", convert_imageset_command},
      {"compute_image_mean", "compute and print the mean of a database",
       compute_image_mean_command},
      {"upgrade_net_proto_text", "bring a net prototxt to the newest form",
       upgrade_net_proto_text_command},
      {"upgrade_net_proto_binary", "bring a .caffemodel to the newest form",
       upgrade_net_proto_binary_command},
      {"upgrade_solver_proto_text", "bring a solver prototxt to the newest form",
       upgrade_solver_proto_text_command},
      {"extract_features", "write what a net's blobs hold into databases",
       extract_features_command},
      {"classify", "name the best classes of images", classify_command},
      {"parse_log", "make tables of a log", parse_log_command},
      {"plot_log", "draw curves of logs", plot_log_command},
      {"draw_net", "draw a net as a graph", draw_net_command},
      {"export", "write a trained net as ONNX, safetensors, deploy.prototxt or HDF5",
       export_command},
      {"import", "make a .caffemodel of a safetensors file", import_command},
      {"simulate", "prove the schedules under faults, or plan a cluster", simulate_command},
      {"doctor", "find what is wrong before hours are lost", doctor_command},
      {"status", "show how a running job stands, once or live", status_command},
      {"jobs", "list what jobs have in Redis, or remove one of them", jobs_command},
      {"token", "make the secret that a master and its workers share", token_command},
      {"cert", "make certificates for master and workers, and revoke them", cert_command},
      {"config", "show a program's options and where each value comes from", config_command},
      {"completion", "print what completes command lines in bash or zsh", completion_command},
      {"manual", "print a page of the manual, or write all", manual_command},
  };
  return all;
}

int speedo_main(const std::vector<std::string>& arguments, const ProcessSecrets& secrets) {
  const std::string first = arguments.empty() ? "" : squash(arguments[0]);
  if (arguments.empty() || first == "help" || first == "h") {
    print_help(arguments.empty() ? stderr : stdout);
    return arguments.empty() ? exit_code(ErrorCode::kUsage) : 0;
  }
  if (first == "version") {
    std::printf("%s\n", version().c_str());
    return 0;
  }
  const CommandEntry* command = find(arguments[0]);
  if (command == nullptr) return report_failure("speedo", unknown_command(arguments[0]));
  const auto code = command->function({{arguments.begin() + 1, arguments.end()}, secrets});
  if (code) return *code;
  return report_failure(("speedo " + arguments[0]).c_str(), code.error());
}

}  // namespace speedo
