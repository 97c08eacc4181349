#include "sim/check/residual_checker.hpp"

#include <bit>
#include <span>

#include <fmt/format.h>

#include <speedo/codec/codec.hpp>

namespace speedo::sim {
namespace {

// By the codec alone, without a residual. Nothing: it cannot be coded.
std::optional<std::vector<float>> as_received(const CodecSpec& codec,
                                              const std::vector<float>& values) {
  std::vector<std::byte> bytes(encoded_bytes_max(codec, values.size()));
  const auto size = encode(codec, values, {}, bytes);
  std::vector<float> received(values.size());
  if (!size || !decode(codec, std::span(bytes).first(*size), received)) return std::nullopt;
  return received;
}

}  // namespace

std::size_t ResidualChecker::add_worker() {
  workers_.emplace_back();
  return workers_.size() - 1;
}

void ResidualChecker::ordered(std::size_t worker, const TrainMessage& order) {
  workers_[worker].orders.push_back(order);
}

// What is kept back of one kind of update means nothing to another.
void ResidualChecker::begin(Worker& worker, const TrainMessage& order) {
  const bool other_stage = worker.order && worker.order->stage != order.stage;
  if (worker.sent && worker.sent->run == order.merged_run && !other_stage) {
    worker.residual = std::move(worker.sent->left);
  }
  worker.sent.reset();
  if (stages_[order.stage].kind != UpdateKind::kGradientOnly) worker.residual.clear();
  worker.order = order;
}

void ResidualChecker::computed(std::size_t index, std::uint64_t run,
                               std::vector<float> gradient) {
  Worker& worker = workers_[index];
  while (!worker.orders.empty() && (!worker.order || worker.order->run != run)) {
    begin(worker, worker.orders.front());
    worker.orders.pop_front();
  }
  worker.gradient = std::move(gradient);
  by_run_[run] = index;
}

void ResidualChecker::contributed(std::uint64_t run, const std::vector<float>& values) {
  const auto found = by_run_.find(run);
  if (found == by_run_.end()) return;
  Worker& worker = workers_[found->second];
  if (!worker.order || worker.order->run != run) return;
  const UpdateSpec& update = stages_[worker.order->stage];
  if (update.kind != UpdateKind::kGradientOnly) return;
  Values wanted = worker.gradient;
  for (std::size_t i = 0; i < worker.residual.size(); ++i) wanted[i] += worker.residual[i];
  const auto received = as_received(update.codec, wanted);
  if (!received || values.size() != wanted.size()) return;
  Sent sent{run, carries_residual(update) ? Values(wanted.size()) : Values{}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>((*received)[i])) {
      return violations_.report(
          Check::kResiduals,
          fmt::format("element {} of run {} is sent as {}, what was computed and kept back is {}, "
                      "and its codec makes {} of that",
                      i, run, values[i], wanted[i], (*received)[i]));
    }
    if (!sent.left.empty()) sent.left[i] = wanted[i] - values[i];
  }
  if (update.codec.kind != CodecKind::kNone) worker.sent = std::move(sent);
}

}  // namespace speedo::sim
