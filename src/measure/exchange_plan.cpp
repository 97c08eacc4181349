#include "measure/exchange_plan.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/memory_limit.hpp"
#include "train/replicas/factor_plan.hpp"

namespace speedo {
namespace {

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

double slot_bytes(const ParameterSlot& slot) {
  return 2.0 * sizeof(float) * static_cast<double>(slot.count());
}

}  // namespace

double ExchangePlan::whole_bytes() const {
  double sum = 0.0;
  for (const Layer& layer : layers) sum += layer.whole_bytes;
  return sum;
}

double ExchangePlan::chosen_bytes() const {
  double sum = 0.0;
  for (const Layer& layer : layers) {
    sum += layer.travels_as_factors ? layer.factor_bytes : layer.whole_bytes;
  }
  return sum;
}

double ExchangePlan::sent_bytes() const {
  double sum = 0.0;
  for (const Layer& layer : layers) sum += layer.sent_bytes;
  return sum;
}

ExchangePlan plan_exchange(const Net& net, std::uint64_t workers) {
  ExchangePlan plan{.workers = workers, .layers = {}};
  const std::vector<FactorShape> possible = net.factor_shapes();
  const std::vector<FactorShape> chosen = choose_factors(possible, workers);
  std::set<std::size_t> seen;  // a shared parameter is its first layer's
  for (const Net::LayerView& view : net.layers()) {
    ExchangePlan::Layer layer{.name = view.layer->name()};
    for (const std::size_t slot : view.slots) {
      if (!seen.insert(slot).second) continue;
      layer.whole_bytes += slot_bytes(net.layout().slots()[slot]);
    }
    if (layer.whole_bytes == 0.0) continue;
    layer.sent_bytes = layer.whole_bytes / 2.0;
    for (const FactorShape& shape : possible) {
      if (std::ranges::find(view.slots, shape.slot) == view.slots.end()) continue;
      layer.factor_bytes = layer.whole_bytes - gradient_bytes(shape) + factor_bytes(shape, workers);
      layer.travels_as_factors = std::ranges::find(chosen, shape) != chosen.end();
      if (!layer.travels_as_factors) continue;
      layer.sent_bytes += sizeof(float) * static_cast<double>(shape.factor_count()) -
                          gradient_bytes(shape) / 2.0;
    }
    plan.layers.push_back(std::move(layer));
  }
  return plan;
}

std::string to_text(const ExchangePlan& plan) {
  std::string text = fmt::format(
      "What each of {} workers sends and receives in a round, with --sync --gradient-only "
      "--replicated\n{:<24}{:>12}{:>12}  {}\n",
      plan.workers, "layer", "whole", "factors", "travels");
  for (const ExchangePlan::Layer& layer : plan.layers) {
    text += fmt::format("{:<24}{:>12}{:>12}  {}\n", layer.name, bytes_text(layer.whole_bytes),
                        layer.factor_bytes == 0.0 ? "-" : bytes_text(layer.factor_bytes),
                        layer.travels_as_factors ? "as factors" : "whole");
  }
  text += fmt::format("{} in all, {} of them sent; {} without factors\n",
                      bytes_text(plan.chosen_bytes()), bytes_text(plan.sent_bytes()),
                      bytes_text(plan.whole_bytes()));
  return text;
}

nlohmann::ordered_json to_json(const ExchangePlan& plan) {
  nlohmann::ordered_json object;
  object["workers"] = plan.workers;
  object["layers"] = nlohmann::ordered_json::array();
  for (const ExchangePlan::Layer& layer : plan.layers) {
    nlohmann::ordered_json row{{"name", layer.name}, {"whole_bytes", layer.whole_bytes}};
    row["factor_bytes"] = nullptr;
    if (layer.factor_bytes != 0.0) row["factor_bytes"] = layer.factor_bytes;
    row["travels_as"] = layer.travels_as_factors ? "factors" : "whole";
    object["layers"].push_back(std::move(row));
  }
  object["whole_bytes"] = plan.whole_bytes();
  object["chosen_bytes"] = plan.chosen_bytes();
  object["sent_bytes"] = plan.sent_bytes();
  return object;
}

}  // namespace speedo
