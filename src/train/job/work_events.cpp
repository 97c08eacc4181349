#include "train/job/work_events.hpp"

#include <algorithm>
#include <limits>

#include "core/net/net_outputs.hpp"

namespace speedo {

MasterEvent event_of_merge(MergeId merge, const Result<MergeResult>& result) {
  if (!result) return master_event::MergeFailed{merge, result.error()};
  return master_event::Merged{merge,         result->version,    result->rejected,
                              result->check, result->not_finite, result->outliers};
}

MasterEvent event_of_stage(const Result<Version>& version) {
  if (!version) return master_event::StageFailed{version.error()};
  return master_event::StageEntered{*version};
}

MasterEvent event_of_test(std::uint64_t iteration, const Result<std::vector<TestScores>>& scores) {
  if (!scores) return master_event::TestFailed{scores.error()};
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  const float accuracy = scores->empty() ? kNone : scores->front().accuracy;
  const float loss = scores->empty() ? kNone : scores->front().loss;
  const bool diverged = !std::all_of(scores->begin(), scores->end(), has_finite_losses);
  return master_event::Tested{iteration, accuracy, loss, diverged};
}

MasterEvent event_of_snapshot(std::uint64_t iteration, const Result<void>& written) {
  if (!written) return master_event::SnapshotFailed{written.error()};
  return master_event::SnapshotDone{iteration};
}

MasterEvent event_of_watch(const Result<void>& seen) {
  if (!seen) return master_event::StoreLost{seen.error()};
  return master_event::StoreBack{};
}

WorkerEvent event_of_preparation(const Result<Digest>& model) {
  if (!model) return worker_event::JobFailed{model.error()};
  return worker_event::JobPrepared{*model};
}

WorkerEvent event_of_run(RunId run, const Result<RunReport>& report) {
  if (!report) return worker_event::RunFailed{run, report.error()};
  return worker_event::RunDone{*report};
}

WorkerEvent event_of_state(const SaveStateMessage& order, const Result<void>& saved) {
  if (saved) return worker_event::StateSaved{order, std::nullopt};
  return worker_event::StateSaved{order, saved.error()};
}

}  // namespace speedo
