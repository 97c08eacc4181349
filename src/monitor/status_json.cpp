#include "monitor/status_json.hpp"

#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "monitor/status_text.hpp"

namespace speedo {
namespace {

using Json = nlohmann::ordered_json;

// JSON knows neither NaN nor infinity: both are unknown.
Json number(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

Json seconds(std::uint64_t microseconds) { return static_cast<double>(microseconds) / 1e6; }

Json phases_json(const PhaseTimes& phases) {
  return {{"data", seconds(phases.data_us)},
          {"forward", seconds(phases.forward_us)},
          {"backward", seconds(phases.backward_us)},
          {"exchange", seconds(phases.exchange_us)},
          {"wait", seconds(phases.wait_us)}};
}

Json worker_json(const WorkerStatus& row) {
  Json object = {{"worker", row.worker.value},
                 {"name", row.name},
                 {"device", row.device},
                 {"state", to_string(row.state)},
                 {"iteration", row.iteration},
                 {"runs", row.runs},
                 {"samples", row.samples},
                 {"images_per_second", number(row.images_per_second)},
                 {"staleness", row.staleness},
                 {"bytes_per_second", number(row.bytes_per_second)},
                 {"pushed_bytes", row.traffic.pushed_bytes},
                 {"pulled_bytes", row.traffic.pulled_bytes},
                 {"last_seen_seconds", static_cast<double>(row.silent_ms) / 1e3},
                 {"dropped", row.dropped},
                 {"skipped_records", row.read_faults.skipped_records},
                 {"parser_deaths", row.read_faults.parser_deaths},
                 {"phase_seconds", phases_json(row.phases)}};
  object["gone_why"] = row.gone_why.empty() ? Json(nullptr) : Json(row.gone_why);
  return object;
}

const char* state_of(const JobStatus& status) {
  if (status.over) return "over";
  if (status.progress.paused) return "paused";
  return status.progress.training ? "training" : "waiting for workers";
}

}  // namespace

std::string status_json(const JobStatus& status) {
  const MasterProgress& progress = status.progress;
  Json object = {{"job", status.job},
                 {"training", status.training},
                 {"state", state_of(status)},
                 {"schedule", status.schedule},
                 {"stage", progress.stage + 1},
                 {"stages", status.stages},
                 {"term", progress.term},
                 {"iteration", progress.iteration},
                 {"max_iteration", status.max_iteration},
                 {"merges", progress.merges},
                 {"contributions", progress.contributions},
                 {"rejected", progress.rejected},
                 {"discarded", progress.discarded},
                 {"ignored", progress.ignored},
                 {"samples", progress.samples},
                 {"skipped_records", progress.read_faults.skipped_records},
                 {"parser_deaths", progress.read_faults.parser_deaths},
                 {"loss", number(progress.last_loss)},
                 {"accuracy", number(progress.accuracy)},
                 {"test_loss", number(progress.test_loss)},
                 {"merges_per_second", number(status.merges_per_second)},
                 {"images_per_second", number(status.images_per_second)},
                 {"seconds_left", number(seconds_left(status))},
                 {"uptime_seconds", static_cast<double>(status.uptime_ms) / 1e3},
                 {"store_away", status.store_away},
                 {"workers_alive", progress.workers_alive},
                 {"workers_min", status.workers_min}};
  object["mean_staleness"] =
      progress.contributions > 0
          ? number(progress.staleness_sum / static_cast<double>(progress.contributions))
          : Json(nullptr);
  object["workers"] = Json::array();
  for (const WorkerStatus& row : status.workers) object["workers"].push_back(worker_json(row));
  return json_text(object);
}

}  // namespace speedo
