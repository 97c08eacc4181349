#pragma once

#include <cstdint>
#include <vector>

#include <speedo/core/solver.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/worker_session.hpp>

namespace speedo {

// How the answers of MasterWork and WorkerWork reach their sessions: as the events that shells
// deliver.

MasterEvent event_of_merge(MergeId merge, const Result<MergeResult>& result);
MasterEvent event_of_stage(const Result<Version>& version);
// The first test net counts; a loss of any that is not finite is divergence.
MasterEvent event_of_test(std::uint64_t iteration, const Result<std::vector<TestScores>>& scores);
MasterEvent event_of_snapshot(std::uint64_t iteration, const Result<void>& written);
MasterEvent event_of_watch(const Result<void>& seen);

WorkerEvent event_of_preparation(const Result<Digest>& model);
WorkerEvent event_of_state(const SaveStateMessage& order, const Result<void>& saved);
WorkerEvent event_of_run(RunId run, const Result<RunReport>& report);

}  // namespace speedo
