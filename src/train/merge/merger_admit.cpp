// Contributions that are looked at whole before they are merged: clipped, or left out.

#include <numeric>
#include <utility>

#include "base/log.hpp"
#include "train/merge/merger_engine.hpp"

namespace speedo {

// Of factors and of elastic differences the norm says nothing about an update.
bool MergerEngine::looks_at_norms() const {
  const bool is_update =
      spec().kind == UpdateKind::kFullDelta || spec().kind == UpdateKind::kGradientOnly;
  return (config_.clip_norm > 0.0 || config_.outlier_factor > 0.0) && is_update && !replica_;
}

Result<MergerEngine::Fault> MergerEngine::take_norms(const MergeParty& party,
                                                     std::vector<double>& norms) {
  NormSums sums(layout_, party.contributions.size());
  const std::vector<ChunkSource*> sources = party.sources();
  std::vector<std::size_t> chunks(chunk_count(contribution_count()));
  std::iota(chunks.begin(), chunks.end(), std::size_t{0});
  const MergerPass::Task task{
      .element_count = contribution_count(), .chunks = chunks, .sources = sources};
  SPEEDO_ASSIGN(const Fault fault, pass_.run(task, sums));
  norms.clear();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    norms.push_back(fault ? 0.0 : sums.norm(i));
    seen_[party.contributions[i].worker] = sums.squares(i);
  }
  return fault;
}

std::unique_ptr<ChunkMerge> MergerEngine::as_seen(std::unique_ptr<ChunkMerge> merge,
                                                  std::span<const Contribution> contributions) {
  std::vector<std::vector<double>> seen;
  for (const Contribution& each : contributions) seen.push_back(seen_.at(each.worker));
  return std::make_unique<MergeAsSeen>(std::move(merge), layout_, std::move(seen), has_changed_);
}

// Reads the contributions once, and again to merge them: those that are at fault or too large are
// left out, the weights of those that are clipped are smaller. `norms`: of all that are whole.
Result<std::vector<MergeJob::Contribution>> MergerEngine::admit(
    std::vector<Contribution> contributions, MergeResult& result, std::vector<double>& norms) {
  while (true) {
    SPEEDO_ASSIGN(const MergeParty party, open(contributions, result.rejected));
    contributions = party.contributions;
    if (contributions.empty()) return contributions;
    SPEEDO_ASSIGN(const Fault fault, take_norms(party, norms));
    if (!fault) break;
    contributions = leave_out(*fault, std::move(contributions), result);
  }
  std::vector<Contribution> admitted;
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    Contribution& each = contributions[i];
    if (norm_filter_.is_outlier(norms[i])) {
      SPEEDO_WARN("contribution of worker {} is not merged: its norm, {:.4g}, is more than {:g} "
                  "times the median of those before", each.worker.value, norms[i],
                  config_.outlier_factor);
      result.rejected.push_back(each.worker);
      result.outliers.push_back(each.worker);
      continue;
    }
    if (config_.clip_norm > 0.0 && norms[i] > config_.clip_norm) {
      each.weight *= static_cast<float>(config_.clip_norm / norms[i]);
    }
    admitted.push_back(each);
  }
  return admitted;
}

}  // namespace speedo
