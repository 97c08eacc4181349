#pragma once

#include <memory>
#include <string>
#include <vector>

#include <speedo/train/merger.hpp>

#include "train/merger_pass.hpp"
#include "train/merger_rule.hpp"

namespace speedo {

// The merger's work, on the merger's thread: weights, the next weights, and the way from one to the
// other.
// Thread safety: one thread at a time.
class MergerEngine {
 public:
  MergerEngine(const MergerConfig& config, const ParameterLayout& layout,
               std::vector<float> weights, Version first_version,
               std::shared_ptr<ParameterStore> store);
  void set_rule(std::unique_ptr<MergerRule> rule) { rule_ = std::move(rule); }

  Result<MergeResult> merge(const master_command::StartMerge& job);
  Result<Version> publish();
  Merger::Copy copy();
  // Publishes again if the store has lost the weights. Says so in the log.
  void restore_lost_weights();

 private:
  using Contribution = master_command::StartMerge::Contribution;
  // Contributions that take part, each with its reader.
  struct Party {
    std::vector<Contribution> contributions;
    std::vector<std::unique_ptr<RecordReader>> readers;
  };
  Result<Party> open(const std::vector<Contribution>& contributions,
                     std::vector<WorkerId>& rejected);
  Result<std::unique_ptr<RecordReader>> open_one(const Contribution& contribution);
  Result<std::optional<std::size_t>> merge_deltas(const Party& party, bool mean,
                                                  RecordWriter& writer);
  Result<std::optional<std::size_t>> merge_gradients(const Party& party, bool mean,
                                                     std::int64_t iteration, RecordWriter& writer);
  Result<void> apply_rule(std::int64_t iteration, RecordWriter& writer);
  Result<std::optional<std::size_t>> try_merge(const Party& party,
                                               const master_command::StartMerge& job);
  RecordInfo info_of(Version version) const;

  const MergerConfig config_;
  const Digest model_;
  const std::shared_ptr<ParameterStore> store_;
  std::vector<float> weights_, next_;
  Version version_;
  bool published_ = false;
  MergerPass pass_;
  std::unique_ptr<MergerRule> rule_;  // null unless kGradientOnly
};

}  // namespace speedo
