#include <cstdio>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>

#include "base/json_member.hpp"
#include "base/json_text.hpp"
#include "base/log.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/net_inputs.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "measure/exchange_plan.hpp"
#include "measure/memory_forecast.hpp"
#include "measure/state_forecast.hpp"

namespace speedo {

namespace {

struct ShowFlags {
  NetFlags net;
  ComputeFlags compute;
  std::string phase;
  std::optional<std::uint64_t> exchange;  // workers
  bool json = false;
};

// What a net of one phase will take, or why that is not known.
struct Peak {
  Phase phase;
  Result<MemoryForecast> forecast;
};

ShowFlags show_flags(const OptionValues& values) {
  ShowFlags flags;
  flags.net = net_flags(values);
  flags.compute = compute_flags(values);
  values.get("phase", flags.phase);
  values.get("exchange", flags.exchange);
  values.get("json", flags.json);
  return flags;
}

const char* name_of(Phase phase) { return phase == Phase::kTrain ? "TRAIN" : "TEST"; }

// Blobs that are others in another layout, and those: layers that only change a blob's layout are
// not the user's.
using Reordered = std::map<std::string, std::string, std::less<>>;

Reordered reordered_in(const Net& net) {
  Reordered found;
  for (const Net::LayerView& view : net.layers()) {
    if (view.is_reorder) found.emplace(view.top_names.front(), view.bottom_names.front());
  }
  return found;
}

// The blobs of these names as the prototxt has them.
std::vector<std::string> as_written(const Reordered& reordered, std::vector<std::string> names) {
  for (std::string& name : names) {
    for (auto other = reordered.find(name); other != reordered.end();
         other = reordered.find(name)) {
      name = other->second;
    }
  }
  return names;
}

// `memory` is the peak of the phase that is shown.
nlohmann::ordered_json describe(const Net& net, const std::vector<Peak>& peaks,
                                const StateForecast& states) {
  const Reordered reordered = reordered_in(net);
  auto blobs = nlohmann::ordered_json::object();
  for (const std::string& name : net.blob_names()) {
    if (!reordered.contains(name)) add_member(blobs, name, net.blob(name)->shape().dims());
  }
  auto params = nlohmann::ordered_json::object();
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->parameters().empty()) continue;
    auto shapes = nlohmann::ordered_json::array();
    for (const Tensor* parameter : view.layer->parameters()) {
      shapes.push_back(parameter->shape().dims());
    }
    add_member(params, view.layer->name(), std::move(shapes));
  }
  nlohmann::ordered_json object;
  object["name"] = net.name();
  object["blobs"] = std::move(blobs);
  object["params"] = std::move(params);
  object["parameter_count"] = net.layout().parameter_count();
  object["layers"] = nlohmann::ordered_json::array();
  for (const Net::LayerView& view : net.layers()) {
    if (view.is_reorder) continue;
    object["layers"].push_back({{"name", view.layer->name()},
                                {"type", view.layer->type()},
                                {"bottoms", as_written(reordered, view.bottom_names)},
                                {"tops", view.top_names}});
  }
  object["peak"] = nlohmann::ordered_json::object();
  for (const Peak& peak : peaks) {
    const char* key = peak.phase == Phase::kTrain ? "train" : "test";
    object["peak"][key] = peak.forecast ? to_json(*peak.forecast) : nlohmann::ordered_json();
    if (peak.phase == net.phase()) object["memory"] = object["peak"][key];
  }
  object["worker_state"] = to_json(states);
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

void print_table(const Net& net, const std::vector<Peak>& peaks, const StateForecast& states) {
  std::string text = fmt::format("{}\n{:<24}{:<18}{:>12}  {}\n", net.name(), "layer", "type",
                                 "parameters", "tops");
  for (const Net::LayerView& view : net.layers()) {
    if (view.is_reorder) continue;
    text += fmt::format("{:<24}{:<18}{:>12}  {}\n", view.layer->name(), view.layer->type(),
                        parameter_count(*view.layer), shapes_of(view));
  }
  text += fmt::format("{} parameters\n", net.layout().parameter_count());
  for (const Peak& peak : peaks) {
    text += fmt::format("Memory at the peak, {}: {}\n", name_of(peak.phase),
                        peak.forecast ? to_text(*peak.forecast)
                                      : "unknown: " + peak.forecast.error().message);
  }
  text += to_text(states);
  std::fputs(text.c_str(), stdout);
}

// A net that has shapes but no memory, and what it needs.
struct Planned {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<FeedFactory> feeds;
  std::unique_ptr<Net> net;
  MemoryForecast forecast;
};

Result<Planned> plan(const ShowFlags& flags, Phase phase, const TrainerParts& parts) {
  Planned planned;
  SPEEDO_ASSIGN(planned.backend, parts.make_backend());
  planned.feeds = parts.make_feeds();
  NetOptions options;
  options.backend = planned.backend.get();
  options.feeds = planned.feeds.get();
  options.plan_only = true;
  options.trains = phase == Phase::kTrain;
  SPEEDO_ASSIGN(planned.net, build_net(flags.net, phase, options));
  planned.forecast =
      forecast(*planned.net, options.trains, options.trains ? 1 : 0, *planned.feeds);
  return planned;
}

Result<MemoryForecast> forecast_of(const ShowFlags& flags, Phase phase, const TrainerParts& parts) {
  SPEEDO_ASSIGN(const Planned planned, plan(flags, phase, parts));
  return planned.forecast;
}

}  // namespace

Result<int> net_command(const CommandLine& line) {
  OptionValues values(Program::kNet);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const ShowFlags flags = show_flags(values);
  SPEEDO_ASSIGN(const Phase phase, parse_phase(flags.phase, Phase::kTrain));
  if (flags.exchange && phase != Phase::kTrain) {
    return usage_error(
        "--exchange is of gradients, which a TEST net has none of: leave --phase out");
  }

  // The result alone is wanted here, not how the net came to be.
  set_up_logging();
  set_log_level(LogLevel::kWarning);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const TrainerParts parts = trainer_parts(compute);
  const Phase other = phase == Phase::kTrain ? Phase::kTest : Phase::kTrain;
  std::vector<Peak> peaks;
  peaks.push_back({other, forecast_of(flags, other, parts)});
  SPEEDO_ASSIGN(const Planned planned, plan(flags, phase, parts));
  peaks.push_back({phase, planned.forecast});
  SPEEDO_ASSIGN(const StateForecast states, forecast_states(planned.forecast.weight_bytes));
  std::optional<ExchangePlan> exchange;
  if (flags.exchange) exchange = plan_exchange(*planned.net, *flags.exchange);
  if (flags.json) {
    nlohmann::ordered_json object = describe(*planned.net, peaks, states);
    if (exchange) object["exchange"] = to_json(*exchange);
    std::printf("%s\n", json_text(object).c_str());
  } else {
    print_table(*planned.net, peaks, states);
    if (exchange) std::fputs(to_text(*exchange).c_str(), stdout);
  }
  return 0;
}

}  // namespace speedo
