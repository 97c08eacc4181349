#include "sim/check/reference_update.hpp"

namespace speedo::sim {

void ReferenceUpdate::apply(Values& weights, std::vector<Values>& histories, const MergeJob& job,
                            std::span<const Contribution> contributions) const {
  const UpdateSpec& spec = stage(job.stage);
  const std::size_t count = weights.size();
  Values record = weights;
  const bool averages = spec.updater == UpdaterState::kAverage;
  if (averages) {
    record.resize(2 * count, 0.0F);
    for (std::size_t i = 0; !histories.empty() && i < histories.front().size(); ++i) {
      record.at(count + i) = histories.front()[i];
    }
  }
  const Sum sum = sum_of(record, job, contributions);
  if (spec.kind == UpdateKind::kGradientOnly) return apply_rule(weights, histories, job, sum);
  for (std::size_t i = 0; i < record.size(); ++i) {
    record[i] = static_cast<float>(record[i] + sum[i]);
  }
  const auto middle = record.begin() + static_cast<std::ptrdiff_t>(count);
  weights.assign(record.begin(), middle);
  if (averages) histories = {Values(middle, record.end())};
}

ReferenceUpdate::Sum ReferenceUpdate::sum_of(const Values& record, const MergeJob& job,
                                             std::span<const Contribution> contributions) const {
  const UpdateSpec& spec = stage(job.stage);
  Sum sum(record.size(), 0.0);
  double shares = 0.0;
  for (const Contribution& each : contributions) {
    for (std::size_t i = 0; i < sum.size() && i < each.values.size(); ++i) {
      const bool is_pull = spec.kind == UpdateKind::kElasticMaster;
      const float change = is_pull ? spec.moving_rate * (each.values[i] - record[i])
                                   : each.values[i];
      sum[i] += static_cast<double>(each.weight) * change;
    }
    shares += each.share;
  }
  if (is_elastic(spec.kind)) return sum;
  const double scale = 1.0 / spec.factor / (job.mean ? shares : 1.0);
  for (double& each : sum) each *= scale;
  return sum;
}

// Momentum SGD: h = m h + rate g; w -= h.
void ReferenceUpdate::apply_rule(Values& weights, std::vector<Values>& histories,
                                 const MergeJob& job, const Sum& gradient) const {
  const UpdateSpec& spec = stage(job.stage);
  if (histories.empty()) histories.assign(1, Values(gradient.size(), 0.0F));
  Values& history = histories.front();
  const float rate = spec.base_lr.value_or(rule_.learning_rate) * job.lr_scale;
  const float momentum = spec.momentum.value_or(rule_.momentum);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    history[i] = momentum * history[i] + rate * static_cast<float>(gradient[i]);
    weights[i] -= history[i];
  }
}

}  // namespace speedo::sim
