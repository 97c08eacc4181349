#include "cli/report/report.hpp"

#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "cli/report/console.hpp"
#include "train/note_text.hpp"

namespace speedo {

namespace {

constexpr const char* kNothingTrained = "nothing was trained";

// JSON knows neither NaN nor infinity: both are unknown.
nlohmann::ordered_json value(const std::optional<double>& number) {
  if (!number || !std::isfinite(*number)) return nullptr;
  return *number;
}

nlohmann::ordered_json value(const std::optional<std::uint64_t>& number) {
  if (!number) return nullptr;
  return *number;
}

}  // namespace

std::string to_json(const Report& report) {
  nlohmann::ordered_json object;
  object["iterations"] = value(report.iterations);
  object["merges"] = value(report.merges);
  object["contributions"] = value(report.contributions);
  object["loss"] = value(report.loss);
  object["accuracy"] = value(report.accuracy);
  object["test_loss"] = value(report.test_loss);
  object["tested_iteration"] = value(report.tested_iteration);
  object["seconds"] = value(report.seconds);
  object["images_per_second"] = value(report.images_per_second);
  object["workers"] = value(report.workers);
  object["rejected"] = value(report.rejected);
  object["discarded"] = value(report.discarded);
  object["ignored"] = value(report.ignored);
  object["mean_staleness"] = value(report.mean_staleness);
  object["seconds_to_first_merge"] = value(report.seconds_to_first_merge);
  object["stage"] = value(report.stage);
  object["term"] = value(report.term);
  object["restarts"] = value(report.restarts);
  object["skipped_records"] = value(report.skipped_records);
  object["parser_deaths"] = value(report.parser_deaths);
  object["data_wait_seconds"] = value(report.data_wait_seconds);
  object["compute_seconds"] = value(report.compute_seconds);
  object["exchange_seconds"] = value(report.exchange_seconds);
  object["forward_seconds"] = value(report.forward_seconds);
  object["backward_seconds"] = value(report.backward_seconds);
  object["wait_seconds"] = value(report.wait_seconds);
  object["predicted_memory_bytes"] = value(report.predicted_memory_bytes);
  object["peak_memory_bytes"] = value(report.peak_memory_bytes);
  object["snapshot"] = nullptr;
  if (!report.snapshot.empty()) object["snapshot"] = report.snapshot;
  return json_text(object);
}

std::string to_text(const Report& report) {
  std::string line;
  const auto add = [&line](const std::string& part) { line += (line.empty() ? "" : ", ") + part; };
  if (report.accuracy && std::isfinite(*report.accuracy)) {
    const bool is_final = !report.tested_iteration || report.tested_iteration == report.iterations;
    add(fmt::format("accuracy {:.4f}", *report.accuracy) +
        (is_final ? "" : fmt::format(" at iteration {}", *report.tested_iteration)));
  }
  if (report.loss && std::isfinite(*report.loss)) add(fmt::format("loss {:.6g}", *report.loss));
  // Without a merge there is no speed and no worker's part to tell of.
  const bool idle = report.merges == 0 && report.iterations.has_value();
  if (idle) {
    add(fmt::format("{} at iteration {}",
                    report.complete ? "nothing was left to train" : kNothingTrained,
                    *report.iterations));
  }
  if (report.iterations && report.seconds && !idle) {
    const std::uint64_t done = report.merges.value_or(*report.iterations);
    add(fmt::format("{} iterations in {:.1f} s", done, *report.seconds));
    if (done != *report.iterations) add(fmt::format("now at iteration {}", *report.iterations));
  }
  if (report.images_per_second && !idle) {
    add(fmt::format("{:.0f} images/s", *report.images_per_second));
  }
  if (report.workers && !idle) {
    add(count_workers(*report.workers));
  }
  if (report.discarded.value_or(0) > 0) add(fmt::format("{} dropped", *report.discarded));
  if (report.skipped_records.value_or(0) > 0) {
    add(fmt::format("{} bad records left out", *report.skipped_records));
  }
  if (report.parser_deaths.value_or(0) > 0) {
    add(fmt::format("{} parser processes ended early", *report.parser_deaths));
  }
  if (!report.snapshot.empty()) add("model in " + report.snapshot);
  return line;
}

std::string phases_text(const Report& report) {
  const bool is_divided = report.forward_seconds && report.backward_seconds;
  const std::pair<std::optional<double>, const char*> phases[] = {
      {report.data_wait_seconds, "of the time waiting for data"},
      {is_divided ? std::nullopt : report.compute_seconds, "computing"},
      {report.forward_seconds, "forward"},
      {report.backward_seconds, "backward"},
      {report.exchange_seconds, "exchanging"},
      {report.wait_seconds, "waiting for master and other workers"}};
  double all = 0.0;
  for (const auto& [seconds, name] : phases) all += seconds.value_or(0.0);
  if (all <= 0.0) return "";
  std::string text;
  for (const auto& [seconds, name] : phases) {
    if (!seconds) continue;
    text += fmt::format("{}{:.1f} % {}", text.empty() ? "" : ", ", 100.0 * *seconds / all, name);
  }
  return text;
}

bool shows_training(const std::string& printed, bool json) {
  if (!json) return !printed.empty() && printed.find(kNothingTrained) == std::string::npos;
  const auto object = nlohmann::json::parse(printed, nullptr, false);
  return object.is_object() && object.value("merges", nlohmann::json()) != 0;
}

std::string with_workers(const std::string& printed, bool json, const WorkerFigures& figures) {
  const std::uint64_t restarts = figures.restarts;
  if (json) {
    auto object = nlohmann::ordered_json::parse(printed, nullptr, false);
    if (!object.is_object()) return printed;
    object["restarts"] = restarts;
    if (figures.predicted_memory_bytes > 0) {
      object["predicted_memory_bytes"] = figures.predicted_memory_bytes;
    }
    if (figures.peak_memory_bytes > 0) object["peak_memory_bytes"] = figures.peak_memory_bytes;
    return json_text(object);
  }
  if (restarts == 0 || printed.empty()) return printed;
  return fmt::format("{}, {} restart{} of workers", printed, restarts, restarts == 1 ? "" : "s");
}

void add_peak_memory(Report& report) {
  const std::int64_t peak = peak_resident_bytes();
  if (peak == 0) return;
  report.peak_memory_bytes = static_cast<std::uint64_t>(peak);
  SPEEDO_DEBUG("Memory at the peak: {}", format_bytes(peak));
}

void print(const Report& report, bool json) {
  clear_live_line();
  std::printf("%s\n", (json ? to_json(report) : to_text(report)).c_str());
  std::fflush(stdout);
}

}  // namespace speedo
