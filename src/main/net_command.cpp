#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>

#include "base/log.hpp"
#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/flag_values.hpp"
#include "main/later_flags.hpp"
#include "main/net_inputs.hpp"
#include "main/parts.hpp"

namespace speedo {

namespace {

struct ShowFlags {
  NetFlags net;
  std::string phase;
  bool json = false;
};

void add_flags(CLI::App& app, ShowFlags& flags) {
  const char* group = "Net";
  takes_file(app.add_option("--model", flags.net.model, "Net prototxt"))->required()->group(group);
  takes(app.add_option("--phase", flags.phase, "TRAIN or TEST (default)"), "WORD")->group(group);
  add_state_flags(app, flags.net);
  app.add_flag("--json", flags.json, "Print one JSON object instead of a table")->group("Other");
  app.footer(
      "Shapes follow from the data, so the sources that the net names must be there.\n\n"
      "Example:\n"
      "  speedo net --model examples/mnist/lenet.prototxt --phase TEST --json");
}

nlohmann::ordered_json describe(const Net& net) {
  nlohmann::ordered_json object;
  object["name"] = net.name();
  object["blobs"] = nlohmann::ordered_json::object();
  for (const std::string& name : net.blob_names()) {
    object["blobs"][name] = net.blob(name)->shape().dims();
  }
  object["params"] = nlohmann::ordered_json::object();
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->parameters().empty()) continue;
    auto shapes = nlohmann::ordered_json::array();
    for (const Tensor* parameter : view.layer->parameters()) {
      shapes.push_back(parameter->shape().dims());
    }
    object["params"][view.layer->name()] = std::move(shapes);
  }
  const Net::Memory memory = net.memory();
  object["parameter_count"] = net.layout().parameter_count();
  object["memory"] = {{"activation_bytes", memory.activation_bytes},
                      {"activation_grad_bytes", memory.activation_grad_bytes},
                      {"parameter_bytes", memory.parameter_bytes},
                      {"parameter_grad_bytes", memory.parameter_grad_bytes},
                      {"total_bytes", memory.activation_bytes + memory.activation_grad_bytes +
                                          memory.parameter_bytes + memory.parameter_grad_bytes}};
  object["layers"] = nlohmann::ordered_json::array();
  for (const Net::LayerView& view : net.layers()) {
    object["layers"].push_back({{"name", view.layer->name()},
                                {"type", view.layer->type()},
                                {"bottoms", view.bottom_names},
                                {"tops", view.top_names}});
  }
  object["fingerprint"] = to_string(net.layout().digest());
  return object;
}

std::string shapes_of(const Net::LayerView& view) {
  std::string text;
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", view.top_names[i],
                        to_string(view.tops[i]->shape()));
  }
  return text;
}

std::int64_t parameter_count(const Layer& layer) {
  std::int64_t count = 0;
  for (const Tensor* parameter : layer.parameters()) count += parameter->count();
  return count;
}

void print_table(const Net& net) {
  std::string text = fmt::format("{}\n{:<24}{:<18}{:>12}  {}\n", net.name(), "layer", "type",
                                 "parameters", "tops");
  for (const Net::LayerView& view : net.layers()) {
    text += fmt::format("{:<24}{:<18}{:>12}  {}\n", view.layer->name(), view.layer->type(),
                        parameter_count(*view.layer), shapes_of(view));
  }
  const Net::Memory memory = net.memory();
  const double mib = 1024.0 * 1024.0;
  text += fmt::format(
      "{} parameters, {:.1f} MiB; activations {:.1f} MiB, with gradients {:.1f} MiB\n",
      net.layout().parameter_count(), static_cast<double>(memory.parameter_bytes) / mib,
      static_cast<double>(memory.activation_bytes) / mib,
      static_cast<double>(memory.activation_bytes + memory.activation_grad_bytes) / mib);
  std::fputs(text.c_str(), stdout);
}

}  // namespace

Result<int> net_command(const std::vector<std::string>& arguments) {
  CLI::App app("Show the shapes, parameters and memory of a net", "speedo net");
  ShowFlags flags;
  add_flags(app, flags);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments));
  if (parsed == Parsed::kDone) return 0;
  SPEEDO_ASSIGN(const Phase phase, parse_phase(flags.phase, Phase::kTest));

  // The result alone is wanted here, not how the net came to be.
  set_up_logging();
  set_log_level(LogLevel::kWarning);
  const TrainerParts parts = trainer_parts();
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  NetOptions options;
  options.backend = backend.get();
  options.feeds = feeds.get();
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_net(flags.net, phase, options));
  if (flags.json) {
    std::printf("%s\n", describe(*net).dump().c_str());
  } else {
    print_table(*net);
  }
  return 0;
}

}  // namespace speedo
