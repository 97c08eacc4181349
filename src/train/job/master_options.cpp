#include "train/job/master_options.hpp"

#include <algorithm>

#include <speedo/train/schedule.hpp>

namespace speedo {

bool has_tests(const MasterConfig& config) {
  const auto tests = [&](const Schedule& stage) {
    return stage.test_interval.value_or(config.test_interval) != 0;
  };
  return config.test_at_start || std::ranges::any_of(config.stages, tests);
}

bool has_weights_in_parts(const MasterOptions& options) {
  return options.merger.in_parts && !any_replicated(options.session.stages);
}

JobSpec job_spec(const MasterOptions& options) {
  const JobTerms& terms = options.spec;
  return {.solver_text = terms.solver_text,
          .base = terms.base,
          .stages = updates_of(options.session.stages),
          .offset_shards = terms.offset_shards,
          .expected_workers = terms.expected_workers,
          .deterministic = terms.deterministic,
          .step_parts = terms.step_parts,
          .snapshot_workers = options.session.snapshot_workers};
}

MergerConfig merger_config(const MasterOptions& options, Platform& platform) {
  return {.stages = updates_of(options.session.stages),
          .publish_interval = options.merger.publish_interval,
          .term = options.session.term,
          .ahead_bytes_min = options.merger.ahead_bytes_min,
          .threads = options.merger.threads,
          .platform = &platform,
          .clip_norm = options.merger.clip_norm,
          .outlier_factor = options.merger.outlier_factor,
          .expected_workers = options.spec.expected_workers};
}

}  // namespace speedo
