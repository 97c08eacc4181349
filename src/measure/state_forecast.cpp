#include "measure/state_forecast.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <speedo/train/update.hpp>

#include "base/memory_limit.hpp"
#include "caffe.pb.h"
#include "train/states/saved_states.hpp"

namespace speedo {

namespace {

constexpr std::array kTypes{"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"};

// One with nothing in it that its type refuses.
caffe::SolverParameter solver_of_type(const std::string& type) {
  caffe::SolverParameter solver;
  solver.set_type(type);
  solver.set_base_lr(0.01F);
  solver.set_lr_policy("fixed");
  return solver;
}

Result<std::int64_t> bytes_of_state(const caffe::SolverParameter& solver, const UpdateSpec& update,
                                    std::int64_t weight_bytes) {
  SPEEDO_ASSIGN(const std::uint64_t arrays, arrays_of_a_worker({update}, solver));
  return static_cast<std::int64_t>(arrays) * weight_bytes;
}

// "SGD, Nesterov", those whose workers have the same.
std::vector<std::string> names_alike(const StateForecast& forecast, std::size_t first) {
  std::vector<std::string> names;
  for (std::size_t i = first; i < forecast.solvers.size(); ++i) {
    const auto& one = forecast.solvers[first];
    const auto& other = forecast.solvers[i];
    const bool is_alike = one.full_delta == other.full_delta && one.elastic == other.elastic &&
                          one.gradient_only == other.gradient_only;
    if (is_alike) names.push_back(other.type);
  }
  return names;
}

}  // namespace

Result<StateForecast> forecast_states(std::int64_t weight_bytes) {
  StateForecast forecast;
  for (const char* const type : kTypes) {
    const caffe::SolverParameter solver = solver_of_type(type);
    StateForecast::OfSolver& made = forecast.solvers.emplace_back();
    made.type = type;
    UpdateSpec update;
    SPEEDO_ASSIGN(made.full_delta, bytes_of_state(solver, update, weight_bytes));
    update.kind = UpdateKind::kElastic;
    SPEEDO_ASSIGN(made.elastic, bytes_of_state(solver, update, weight_bytes));
    update.kind = UpdateKind::kGradientOnly;
    SPEEDO_ASSIGN(made.gradient_only, bytes_of_state(solver, update, weight_bytes));
    update.codec.kind = CodecKind::kBf16;
    SPEEDO_ASSIGN(const std::int64_t coded, bytes_of_state(solver, update, weight_bytes));
    forecast.codec_residual = coded - made.gradient_only;
  }
  return forecast;
}

std::string to_text(const StateForecast& forecast) {
  std::string text = "A worker's state, with --snapshot-workers:\n";
  std::vector<std::string> told;
  for (std::size_t i = 0; i < forecast.solvers.size(); ++i) {
    const auto& each = forecast.solvers[i];
    if (std::ranges::count(told, each.type) != 0) continue;
    const std::vector<std::string> names = names_alike(forecast, i);
    told.insert(told.end(), names.begin(), names.end());
    text += fmt::format("  {}: {}, elastic {}, gradients {}\n", fmt::join(names, ", "),
                        format_bytes(each.full_delta), format_bytes(each.elastic),
                        format_bytes(each.gradient_only));
  }
  return text + fmt::format("  with a lossy codec {} more, not elastic\n",
                            format_bytes(forecast.codec_residual));
}

nlohmann::ordered_json to_json(const StateForecast& forecast) {
  nlohmann::ordered_json object;
  for (const StateForecast::OfSolver& each : forecast.solvers) {
    object[each.type] = {{"full_delta_bytes", each.full_delta},
                         {"elastic_bytes", each.elastic},
                         {"gradient_only_bytes", each.gradient_only}};
  }
  object["codec_residual_bytes"] = forecast.codec_residual;
  return object;
}

}  // namespace speedo
