#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>

#include "base/log.hpp"
#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/console.hpp"
#include "main/flag_values.hpp"
#include "main/later_flags.hpp"
#include "main/net_inputs.hpp"
#include "main/parts.hpp"
#include "main/signals.hpp"

namespace speedo {

namespace {

struct TimeFlags {
  NetFlags net;
  std::string phase;
  int iterations = 50;
  bool json = false, debug = false;
};

// Sums over the iterations, in milliseconds.
struct Timings {
  std::vector<double> forward_ms, backward_ms;  // per layer
  double forward_total_ms = 0.0, backward_total_ms = 0.0;
  int iterations = 0;
};

void add_flags(CLI::App& app, TimeFlags& flags) {
  const char* group = "Timing";
  takes_file(app.add_option("--model", flags.net.model, "Net prototxt"))->required()->group(group);
  takes_file(app.add_option("--weights", flags.net.weights,
                            ".caffemodel to use (default: what the fillers give)"))
      ->group(group);
  takes_count(app.add_option("--iterations", flags.iterations, "Passes to measure (default 50)"), 1)
      ->group(group);
  takes(app.add_option("--phase", flags.phase, "TRAIN (default) or TEST"), "WORD")->group(group);
  add_state_flags(app, flags.net);
  app.add_flag("--json", flags.json, "Print the result as one JSON object on standard output")
      ->group("Other");
  app.add_flag("--debug", flags.debug, "Log more")->group("Other");
  app.footer(
      "Example:\n"
      "  speedo time -model examples/mnist/lenet_train_test.prototxt -iterations 20");
}

double milliseconds_since(Instant start) {
  return std::chrono::duration<double, std::milli>(steady_clock().now() - start).count();
}

// One forward and one backward pass, each layer measured on its own.
Result<void> measure(Net& net, Backend& backend, Timings& timings) {
  const std::size_t count = net.layers().size();
  net.clear_gradients();
  backend.synchronize();
  const Instant forward_start = steady_clock().now();
  for (std::size_t i = 0; i < count; ++i) {
    const Instant start = steady_clock().now();
    SPEEDO_TRY(net.forward_layer(i));
    backend.synchronize();
    timings.forward_ms[i] += milliseconds_since(start);
  }
  timings.forward_total_ms += milliseconds_since(forward_start);
  const Instant backward_start = steady_clock().now();
  for (std::size_t i = count; i-- > 0;) {
    const Instant start = steady_clock().now();
    net.backward_layer(i);
    backend.synchronize();
    timings.backward_ms[i] += milliseconds_since(start);
  }
  timings.backward_total_ms += milliseconds_since(backward_start);
  ++timings.iterations;
  return {};
}

Result<Timings> benchmark(Net& net, Backend& backend, int iterations) {
  Timings timings;
  timings.forward_ms.resize(net.layers().size());
  timings.backward_ms.resize(net.layers().size());
  SPEEDO_INFO("Performing Forward");
  net.set_data_span({});
  SPEEDO_ASSIGN(const float loss, net.forward());
  SPEEDO_INFO("Initial loss: {:g}", loss);
  SPEEDO_INFO("Performing Backward");
  net.backward();
  SPEEDO_INFO("*** Benchmark begins ***");
  SPEEDO_INFO("Testing for {} iterations.", iterations);
  while (timings.iterations < iterations && !stop_requested()) {
    const double before = timings.forward_total_ms + timings.backward_total_ms;
    SPEEDO_TRY(measure(net, backend, timings));
    SPEEDO_INFO("Iteration: {} forward-backward time: {:g} ms.", timings.iterations,
                timings.forward_total_ms + timings.backward_total_ms - before);
  }
  return timings;
}

void log_averages(const Net& net, const Timings& timings) {
  const double n = timings.iterations;
  SPEEDO_INFO("Average time per layer: ");
  for (std::size_t i = 0; i < net.layers().size(); ++i) {
    const std::string& name = net.layers()[i].layer->name();
    SPEEDO_INFO("{:>10}\tforward: {:g} ms.", name, timings.forward_ms[i] / n);
    SPEEDO_INFO("{:>10}\tbackward: {:g} ms.", name, timings.backward_ms[i] / n);
  }
  const double total_ms = timings.forward_total_ms + timings.backward_total_ms;
  SPEEDO_INFO("Average Forward pass: {:g} ms.", timings.forward_total_ms / n);
  SPEEDO_INFO("Average Backward pass: {:g} ms.", timings.backward_total_ms / n);
  SPEEDO_INFO("Average Forward-Backward: {:g} ms.", total_ms / n);
  SPEEDO_INFO("Total Time: {:g} ms.", total_ms);
  SPEEDO_INFO("*** Benchmark ends ***");
}

void print_json(const Net& net, const Timings& timings) {
  const double n = timings.iterations;
  nlohmann::ordered_json object;
  object["net"] = net.name();
  object["iterations"] = timings.iterations;
  object["forward_ms"] = timings.forward_total_ms / n;
  object["backward_ms"] = timings.backward_total_ms / n;
  object["forward_backward_ms"] = (timings.forward_total_ms + timings.backward_total_ms) / n;
  object["images_per_second"] = static_cast<double>(images_per_pass(net)) * n * 1000.0 /
                                (timings.forward_total_ms + timings.backward_total_ms);
  object["layers"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < net.layers().size(); ++i) {
    const Layer& layer = *net.layers()[i].layer;
    object["layers"].push_back({{"name", layer.name()},
                                {"type", layer.type()},
                                {"forward_ms", timings.forward_ms[i] / n},
                                {"backward_ms", timings.backward_ms[i] / n}});
  }
  std::printf("%s\n", object.dump().c_str());
}

}  // namespace

Result<int> time_command(const std::vector<std::string>& arguments) {
  CLI::App app("Measure a net layer by layer", "speedo time");
  TimeFlags flags;
  add_flags(app, flags);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments));
  if (parsed == Parsed::kDone) return 0;
  SPEEDO_ASSIGN(const Phase phase, parse_phase(flags.phase, Phase::kTrain));

  set_up_console(flags.debug);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  const TrainerParts parts = trainer_parts();
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  SPEEDO_INFO("Use CPU.");
  NetOptions options;
  options.backend = backend.get();
  options.feeds = feeds.get();
  SPEEDO_ASSIGN(const std::unique_ptr<Net> net, build_net(flags.net, phase, options));
  SPEEDO_ASSIGN(const Timings timings, benchmark(*net, *backend, flags.iterations));
  if (timings.iterations == 0) {
    return Error{ErrorCode::kUnavailable, "stopped before the first iteration"};
  }
  log_averages(*net, timings);
  if (flags.json) print_json(*net, timings);
  return 0;
}

}  // namespace speedo
