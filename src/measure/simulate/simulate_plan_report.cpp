#include "measure/simulate/simulate_plan_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "measure/text_columns.hpp"
#include "sim/plan/cost_exchange.hpp"

namespace speedo {

namespace {

using Json = nlohmann::ordered_json;

// JSON knows neither NaN nor infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json curve_of(const std::vector<sim::PlanPoint>& curve) {
  Json points = Json::array();
  for (const sim::PlanPoint& point : curve) {
    points.push_back({{"seconds", number(point.seconds)},
                      {"iteration", point.iteration},
                      {"loss", number(point.loss)},
                      {"accuracy", number(point.accuracy)}});
  }
  return points;
}

Json row_of(const PlanRow& row, bool trained) {
  const sim::PlanResult& result = row.result;
  Json object;
  object["schedule"] = row.schedule;
  object["workers"] = row.workers;
  object["iterations"] = result.iterations;
  object["seconds"] = number(result.seconds);
  object["iterations_per_second"] = number(result.iterations_per_second);
  object["images_per_second"] = number(result.images_per_second);
  object["speed_up"] = number(result.speed_up);
  object["mean_staleness"] = number(result.staleness);
  object["contributions"] = result.contributions;
  object["discarded"] = result.discarded;
  object["bytes_per_iteration"] = number(result.bytes_per_iteration);
  object["bytes_per_second"] = number(result.bytes_per_second);
  object["store_busy"] = number(result.store_busy);
  object["master_busy"] = number(result.master_busy);
  object["computing"] = number(result.computing);
  object["exchanging"] = number(result.exchanging);
  if (!trained) return object;
  object["seconds_to_loss"] = number(row.seconds_to_loss);
  object["speed_up_to_loss"] = number(row.speed_up_to_loss);
  object["curve"] = curve_of(result.curve);
  return object;
}

std::string percent(double part) { return fmt::format("{:.0f} %", part * 100.0); }

Cells cells_of(const PlanRow& row, bool trained) {
  const sim::PlanResult& result = row.result;
  Cells cells = {row.schedule,
                 std::to_string(row.workers),
                 fmt::format("{:.4g}", result.iterations_per_second),
                 fmt::format("{:.4g}", result.images_per_second),
                 fmt::format("{:.2f}", result.speed_up),
                 fmt::format("{:.2f}", result.staleness),
                 std::to_string(result.discarded),
                 fmt::format("{:.3g}", result.bytes_per_iteration / 1e6),
                 fmt::format("{:.3g}", result.bytes_per_second / 1e6),
                 percent(result.computing),
                 percent(result.exchanging),
                 percent(result.store_busy),
                 percent(result.master_busy)};
  if (!trained) return cells;
  cells.push_back(result.curve.empty() ? "-" : fmt::format("{:.4g}", result.curve.back().loss));
  cells.push_back(row.seconds_to_loss ? fmt::format("{:.4g}", *row.seconds_to_loss) : "-");
  cells.push_back(row.speed_up_to_loss ? fmt::format("{:.2f}", *row.speed_up_to_loss) : "-");
  return cells;
}

}  // namespace

std::string to_json(const PlanReport& report) {
  Json object;
  object["title"] = report.cluster.title;
  object["seed"] = report.seed;
  object["exchange"] = sim::describe_exchange(report.cluster);
  object["sequential_images_per_second"] =
      number(sim::sequential_images_per_second(report.cluster));
  const bool trained = report.baseline.has_value();
  if (trained) {
    object["one_worker"] = {{"loss", number(report.baseline->loss)},
                            {"seconds", number(report.baseline->seconds)},
                            {"curve", curve_of(report.baseline->curve)}};
  }
  object["plans"] = Json::array();
  for (const PlanRow& row : report.rows) object["plans"].push_back(row_of(row, trained));
  return json_text(object);
}

std::string to_table(const PlanReport& report) {
  const bool trained = report.baseline.has_value();
  std::vector<Cells> rows = {{"schedule", "workers", "iter/s", "images/s", "speed-up",
                              "staleness", "dropped", "MB/iter", "MB/s", "compute", "exchange",
                              "store", "master"}};
  if (trained) {
    for (const char* name : {"loss", "s to loss", "faster"}) rows.front().emplace_back(name);
  }
  for (const PlanRow& row : report.rows) rows.push_back(cells_of(row, trained));
  std::string text = report.cluster.title.empty() ? "" : report.cluster.title + "\n";
  text += fmt::format("One worker without a cluster: {:.4g} images/s",
                      sim::sequential_images_per_second(report.cluster));
  if (trained) {
    text += fmt::format(", loss {:.4g} after {:.4g} s", report.baseline->loss,
                        report.baseline->seconds);
  }
  text += "\nExchange: " + sim::describe_exchange(report.cluster);
  return text + "\n" + in_columns(rows);
}

}  // namespace speedo
