#include "measure/memory_forecast.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>
#include <speedo/core/update_rule.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "caffe.pb.h"

namespace speedo {

namespace {

// Code of the libraries, and their own buffers, that are touched when layers first run. Fitted:
// with it, predictions for LeNet to VGG-16 with 1 and 2 threads are within 1 % of the peaks.
constexpr std::int64_t kFirstUseBytes = 8 << 20;

struct Part {
  const char* key;
  const char* text;
  std::int64_t MemoryForecast::* bytes;
  bool is_of_nets;  // it lies where nets are computed
};

constexpr std::array<Part, 10> kParts{{
    {"weight_bytes", "weights", &MemoryForecast::weight_bytes, true},
    {"weight_grad_bytes", "their gradients", &MemoryForecast::weight_grad_bytes, true},
    {"history_bytes", "solver history", &MemoryForecast::history_bytes, true},
    {"blob_bytes", "blobs", &MemoryForecast::blob_bytes, true},
    {"workspace_bytes", "workspace", &MemoryForecast::workspace_bytes, true},
    {"scratch_bytes", "scratch", &MemoryForecast::scratch_bytes, true},
    {"batch_bytes", "batches read ahead", &MemoryForecast::batch_bytes, false},
    {"exchange_bytes", "exchange", &MemoryForecast::exchange_bytes, false},
    {"snapshot_bytes", "snapshots", &MemoryForecast::snapshot_bytes, false},
    {"base_bytes", "process", &MemoryForecast::base_bytes, false},
}};

MemoryKind memory_of(const Part& part, const MemoryForecast& forecast) {
  return part.is_of_nets ? forecast.nets : MemoryKind::kHost;
}

// Weights and history as messages, and the larger one as a file's bytes.
std::int64_t snapshot_bytes(const caffe::SolverParameter& solver, const MemoryForecast& forecast) {
  if (solver.snapshot() <= 0 && !solver.snapshot_after_train()) return 0;
  const std::int64_t weights = forecast.weight_bytes * (solver.snapshot_diff() ? 2 : 1);
  return weights + forecast.history_bytes + std::max(weights, forecast.history_bytes);
}

}  // namespace

std::int64_t MemoryForecast::total_bytes() const {
  std::int64_t total = 0;
  for (const Part& part : kParts) total += this->*part.bytes;
  return total;
}

std::int64_t MemoryForecast::bytes_in(MemoryKind memory) const {
  std::int64_t total = 0;
  for (const Part& part : kParts) {
    if (memory_of(part, *this) == memory) total += this->*part.bytes;
  }
  return total;
}

MemoryForecast forecast(const Net& net, bool trains, std::size_t histories,
                        const FeedFactory& feeds) {
  const Net::Memory memory = net.memory();
  MemoryForecast forecast;
  forecast.weight_bytes = memory.parameter_bytes;
  if (trains) forecast.weight_grad_bytes = memory.parameter_grad_bytes;
  forecast.history_bytes = static_cast<std::int64_t>(histories) * memory.parameter_bytes;
  forecast.blob_bytes = memory.blob_bytes;
  forecast.workspace_bytes = memory.workspace_bytes;
  forecast.scratch_bytes = memory.scratch_bytes;
  forecast.batch_bytes = feeds.totals().host_bytes;
  forecast.base_bytes = resident_bytes() + kFirstUseBytes;
  forecast.nets = net.backend().device().memory();
  return forecast;
}

Result<MemoryForecast> forecast_training(const caffe::SolverParameter& solver,
                                         SolverOptions options) {
  options.plan_only = true;
  SPEEDO_ASSIGN(const SolverNets nets, create_nets(solver, options));
  SPEEDO_ASSIGN(const std::size_t histories, UpdateRule::history_count(solver));
  MemoryForecast result = forecast(*nets.train, true, histories, *options.feeds);
  for (const std::unique_ptr<Net>& test : nets.tests) {
    const Net::Memory memory = test->memory();
    result.blob_bytes += memory.blob_bytes;
    result.workspace_bytes += memory.workspace_bytes;
    result.scratch_bytes = std::max(result.scratch_bytes, memory.scratch_bytes);
  }
  result.snapshot_bytes = snapshot_bytes(solver, result);
  return result;
}

MemoryForecast times(const MemoryForecast& forecast, std::uint64_t count) {
  MemoryForecast all = forecast;
  for (const Part& part : kParts) {
    if (part.bytes == &MemoryForecast::base_bytes) continue;
    all.*part.bytes *= static_cast<std::int64_t>(count);
  }
  return all;
}

std::string parts_text(const MemoryForecast& forecast, MemoryKind memory) {
  std::string text;
  for (const Part& part : kParts) {
    const std::int64_t bytes = forecast.*part.bytes;
    if (bytes == 0 || memory_of(part, forecast) != memory) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", part.text, format_bytes(bytes));
  }
  return text;
}

std::string to_text(const MemoryForecast& forecast, MemoryKind memory) {
  return format_bytes(forecast.bytes_in(memory)) + ": " + parts_text(forecast, memory);
}

std::string to_text(const MemoryForecast& forecast) {
  const std::string host = to_text(forecast, MemoryKind::kHost);
  if (forecast.nets == MemoryKind::kHost) return host;
  return to_text(forecast, MemoryKind::kDevice) + "; on the host " + host;
}

nlohmann::ordered_json to_json(const MemoryForecast& forecast) {
  nlohmann::ordered_json object;
  for (const Part& part : kParts) object[part.key] = forecast.*part.bytes;
  object["total_bytes"] = forecast.total_bytes();
  if (forecast.nets == MemoryKind::kDevice) {
    object["device_bytes"] = forecast.bytes_in(MemoryKind::kDevice);
  }
  return object;
}

}  // namespace speedo
