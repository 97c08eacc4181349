// The saved text: a line "speed name" for each worker, in the order of names.

#include "worker_speeds.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

constexpr std::uint64_t kReportsToKnow = 3;

// Names of workers that are gone, at most: the state travels with every version of the weights.
constexpr std::size_t kKeptMax = 256;

std::optional<std::pair<std::string, double>> parse_line(std::string_view line) {
  double speed = 0.0;
  const char* const end = line.data() + line.size();
  const auto [after, code] = std::from_chars(line.data(), end, speed);
  if (code != std::errc() || !std::isfinite(speed) || speed <= 0.0) return std::nullopt;
  if (end - after < 2 || *after != ' ') return std::nullopt;
  return std::pair(std::string(after + 1, end), speed);
}

}  // namespace

void WorkerSpeeds::joined(WorkerId worker, const std::string& name) {
  Measurement measurement;
  measurement.name = name;
  if (const auto kept = kept_.find(name); kept != kept_.end()) {
    measurement.speed = kept->second;
    kept_.erase(kept);
  }
  const bool inserted = live_.emplace(worker, std::move(measurement)).second;
  SPEEDO_ASSERT(inserted);
}

void WorkerSpeeds::left(WorkerId worker) {
  const auto gone = live_.find(worker);
  SPEEDO_ASSERT(gone != live_.end());
  keep(gone->second.name, gone->second.speed);
  live_.erase(gone);
}

void WorkerSpeeds::keep(const std::string& name, double speed) {
  if (speed == 0.0 || name.empty() || name.find('\n') != std::string::npos) return;
  kept_[name] = speed;
  if (kept_.size() > kKeptMax) kept_.erase(kept_.begin());
}

void WorkerSpeeds::reported(WorkerId worker, std::uint64_t samples, std::uint64_t duration_us) {
  const auto found = live_.find(worker);
  SPEEDO_ASSERT(found != live_.end());
  Measurement& measurement = found->second;
  measurement.reports += 1;
  if (measurement.reports == 1) return;
  if (samples > 0 && duration_us > 0) {
    measurement.samples += samples;
    measurement.duration_us += duration_us;
  }
  if (measurement.speed > 0.0 || measurement.reports < kReportsToKnow) return;
  if (measurement.duration_us == 0) return;
  measurement.speed =
      static_cast<double>(measurement.samples) / static_cast<double>(measurement.duration_us);
}

bool WorkerSpeeds::settled(WorkerId worker) const {
  const Measurement& measurement = live_.at(worker);
  return measurement.speed > 0.0 || measurement.reports >= kReportsToKnow;
}

std::map<WorkerId, double> WorkerSpeeds::known() const {
  std::map<WorkerId, double> speeds;
  for (const auto& [worker, measurement] : live_) {
    if (measurement.speed > 0.0) speeds.emplace(worker, measurement.speed);
  }
  return speeds;
}

void WorkerSpeeds::renew() {
  for (auto& [worker, measurement] : live_) {
    if (measurement.duration_us == 0) continue;
    measurement.speed =
        static_cast<double>(measurement.samples) / static_cast<double>(measurement.duration_us);
    measurement.samples = 0;
    measurement.duration_us = 0;
  }
}

std::string WorkerSpeeds::save() const {
  WorkerSpeeds all;
  all.kept_ = kept_;
  for (const auto& [worker, measurement] : live_) {
    if (measurement.speed == 0.0 || measurement.name.empty()) continue;
    if (measurement.name.find('\n') != std::string::npos) continue;
    all.kept_[measurement.name] = measurement.speed;
  }
  std::string text;
  for (const auto& [name, speed] : all.kept_) {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), speed).ptr;
    text += std::string(digits.data(), end) + ' ' + name + '\n';
  }
  return text;
}

Result<void> WorkerSpeeds::restore(std::string_view text) {
  SPEEDO_ASSERT(live_.empty());
  std::map<std::string, double> speeds;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    auto line = end == std::string_view::npos ? std::nullopt : parse_line(text.substr(0, end));
    if (!line || !speeds.insert(*std::move(line)).second) {
      return Error{ErrorCode::kCorrupt,
                   "saved state of strategy 'grouping': a line is not 'speed name'"};
    }
    text.remove_prefix(end + 1);
  }
  kept_ = std::move(speeds);
  return {};
}

}  // namespace speedo
