#include "main/report.hpp"

#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "main/console.hpp"

namespace speedo {

namespace {

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
  object["seconds"] = value(report.seconds);
  object["images_per_second"] = value(report.images_per_second);
  object["workers"] = value(report.workers);
  object["rejected"] = value(report.rejected);
  object["discarded"] = value(report.discarded);
  object["ignored"] = value(report.ignored);
  object["mean_staleness"] = value(report.mean_staleness);
  object["seconds_to_first_merge"] = value(report.seconds_to_first_merge);
  object["stage"] = value(report.stage);
  object["epoch"] = value(report.epoch);
  object["restarts"] = value(report.restarts);
  object["snapshot"] = nullptr;
  if (!report.snapshot.empty()) object["snapshot"] = report.snapshot;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_text(const Report& report) {
  std::string line;
  const auto add = [&line](const std::string& part) { line += (line.empty() ? "" : ", ") + part; };
  if (report.accuracy && std::isfinite(*report.accuracy)) {
    add(fmt::format("accuracy {:.4f}", *report.accuracy));
  }
  if (report.loss && std::isfinite(*report.loss)) add(fmt::format("loss {:.6g}", *report.loss));
  if (report.iterations && report.seconds) {
    add(fmt::format("{} iterations in {:.1f} s", *report.iterations, *report.seconds));
  }
  if (report.images_per_second) add(fmt::format("{:.0f} images/s", *report.images_per_second));
  if (report.workers) {
    add(fmt::format("{} worker{}", *report.workers, *report.workers == 1 ? "" : "s"));
  }
  if (report.discarded.value_or(0) > 0) add(fmt::format("{} dropped", *report.discarded));
  if (!report.snapshot.empty()) add("model in " + report.snapshot);
  return line;
}

std::string with_restarts(const std::string& printed, bool json, std::uint64_t restarts) {
  if (json) {
    auto object = nlohmann::ordered_json::parse(printed, nullptr, false);
    if (!object.is_object()) return printed;
    object["restarts"] = restarts;
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  if (restarts == 0 || printed.empty()) return printed;
  return fmt::format("{}, {} restart{} of workers", printed, restarts, restarts == 1 ? "" : "s");
}

void print(const Report& report, bool json) {
  clear_live_line();
  std::printf("%s\n", (json ? to_json(report) : to_text(report)).c_str());
  std::fflush(stdout);
}

}  // namespace speedo
