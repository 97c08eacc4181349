#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/train/merger.hpp>

#include "base/note_interval.hpp"
#include "caffe.pb.h"
#include "train/merge/chunk_merge.hpp"
#include "train/merge/contribution_norms.hpp"
#include "train/merge/merge_ahead.hpp"
#include "train/merge/merger_party.hpp"
#include "train/merge/merger_checkpoint.hpp"
#include "train/merge/merger_pass.hpp"
#include "train/merge/merger_publication.hpp"
#include "train/merge/merger_record.hpp"
#include "train/merge/merger_rule.hpp"
#include "train/merge/merger_work.hpp"
#include "train/replicas/merger_replica.hpp"
#include "train/replicas/step_parts.hpp"
#include "train/store_errand.hpp"
#include "store/shared/shared_store.hpp"

namespace speedo {

// The merger's work: weights, the next weights, and the way from one to the other.
// Thread safety: one thread at a time; of some backends one thread for all its life.
class MergerEngine : public MergerWork {
 public:
  using MakeBackend = std::function<Result<std::unique_ptr<Backend>>()>;
  // Errors: see make_merger().
  static Result<std::unique_ptr<MergerEngine>> create(
      const MergerConfig& config, const ParameterLayout& layout,
      const caffe::SolverParameter& solver, Checkpoint start,
      std::shared_ptr<RecordStore> store, const MakeBackend& make_backend);
  ~MergerEngine() override { forget_expected(); }
  MergerEngine(const MergerEngine&) = delete;
  MergerEngine& operator=(const MergerEngine&) = delete;

  Result<MergeResult> merge(const MergeJob& job) override;
  void expect(const MergeJob& job) override;
  bool expects() const override {
    return expected_ || (config_.step_parts && config_.step_parts->expects());
  }
  bool merge_ahead() override;
  void write_checkpoint(bool may_go_on) override;
  // One is written after the next merge, however few there were since the last.
  void want_checkpoint() { checkpoint_.make_due(); }
  Instant publish_behind() override;
  void close() override;
  Result<Version> enter_stage(std::uint32_t stage, const std::string& state) override;
  Result<Merger::Copy> take_copy() override;
  Merger::Copy copy();
  // Never fails: the weights are in memory.
  Result<void> restore_lost_weights() override;
  // Whether the merge under way goes on with what was merged ahead of its order.
  bool begun_ahead() const { return begun_ahead_; }

 private:
  using Contribution = MergeJob::Contribution;
  using Histories = MergerRule::Histories;
  using Fault = ChunkMerge::Fault;

  MergerEngine(const MergerConfig& config, const ParameterLayout& layout,
               const caffe::SolverParameter& solver, Checkpoint start,
               std::shared_ptr<RecordStore> store);
  Result<void> check_start(const MakeBackend& make_backend);

  // merger_engine.cpp
  RecordInfo info_of(Version version, const std::string& state) const;
  std::span<const float> weights() const { return record_.values().first(weight_count_); }
  const UpdateSpec& spec() const { return config_.stages[*stage_]; }
  bool has_histories_apart() const { return (rule_ && !replica_) || !kept_.empty(); }
  // Floats of a contribution.
  std::size_t contribution_count() const {
    return replica_ ? replica_->contribution_count() : record_.size();
  }
  Histories histories();
  void fill_checkpoint();
  void fill_checkpoint(const Histories& histories);
  void put_checkpoint(bool may_go_on);
  void finish_checkpoint();
  Result<void> note(Result<void> written);
  RecordStore& past_shared_memory() { return config_.shared ? config_.shared->base() : *store_; }
  Result<MergerRecord> make_record(std::span<const float> values, Version version) const;
  Result<void> publish_first(const MergerRecord& record, const RecordInfo& info);
  void begin_publication();
  void finish_publication();
  Result<void> erase_earlier_checkpoint();
  Result<void> publish_now();
  void put_again_if_lost();
  void begin_look();
  void take_look();

  // merger_engine_replica.cpp
  std::unique_ptr<MergerReplica> make_replica(const UpdateSpec& update) const;
  Result<void> publish_first_replica(const Histories& histories, RecordInfo info);
  Result<void> settle();
  std::span<const float> published_values();
  bool makes_steps_in_parts() const { return replica_ && config_.step_parts; }
  RecordInfo next_step() const;
  void expect_in_parts(const MergeJob& job);
  Result<MergeResult> merge_in_parts(const MergeJob& job);

  // merger_merge.cpp
  Result<MergeResult> merge_party(const MergeJob& job);
  Result<MergeParty> open(const std::vector<Contribution>& contributions,
                          std::vector<WorkerId>& rejected);
  Result<Fault> try_merge(const MergeParty& party, const MergeJob& job, bool goes_on);
  std::vector<Contribution> leave_out(std::size_t fault, std::vector<Contribution> contributions,
                                      MergeResult& result) const;
  std::string name_of_place(std::uint64_t element) const;
  std::unique_ptr<ChunkMerge> make_chunk_merge(const MergeJob& job,
                                               std::span<const Contribution> contributions);
  // merger_admit.cpp
  bool looks_at_norms() const;
  Result<Fault> take_norms(const MergeParty& party, std::vector<double>& norms);
  std::unique_ptr<ChunkMerge> as_seen(std::unique_ptr<ChunkMerge> merge,
                                      std::span<const Contribution> contributions);
  Result<std::vector<Contribution>> admit(std::vector<Contribution> contributions,
                                          MergeResult& result, std::vector<double>& norms);

  void forget_expected();
  bool is_refused(const MergeJob& job, const MergeResult& result) const {
    return (config_.is_part && !result.rejected.empty()) || is_put_off(job, result);
  }
  bool comes_through_store(std::span<const Contribution> contributions) const;
  void advance(const MergeJob& job);
  void count_merge(const MergeJob& job);

  const MergerConfig config_;
  const ParameterLayout layout_;
  const caffe::SolverParameter solver_;
  const Digest model_;
  const std::size_t weight_count_;
  const std::shared_ptr<RecordStore> store_;
  std::unique_ptr<Backend> backend_;  // of the rules; null if no stage has one

  std::optional<std::uint32_t> stage_;  // none before the first was entered
  // What is published: the weights, and behind them their histories if the stage averages them.
  MergerRecord record_;
  std::unique_ptr<MergerRule> rule_;  // null unless the stage is kGradientOnly
  std::unique_ptr<MergerReplica> replica_;  // null unless its updates are replicated
  std::optional<WeightsCheck> check_;       // the newest
  // Of a replica, while its weights are being published; until then training has those before it.
  struct LastMerge {
    MergeResult result;
    Merger::Copy before;
  };
  std::optional<LastMerge> last_made_;
  std::vector<std::vector<float>> locals_;  // kElasticMaster: one for each worker of a merge
  Histories kept_;                    // while neither the rule nor the record has them
  Version version_;
  std::string state_;
  std::optional<Error> superseded_;   // another master has the job: nothing is written any more
  bool store_failed_ = false;         // at the last merge or publication
  MergerPass pass_;
  NormFilter norm_filter_;
  std::map<WorkerId, std::vector<double>> seen_;  // squares of this merge's, if they are looked at
  std::atomic<bool> has_changed_{false};          // the one at fault in the last pass, since then
  MergerCheckpoint checkpoint_;
  bool has_earlier_checkpoint_ = false;  // one of an earlier master may be in the store
  std::vector<std::string> replaced_;    // other records of earlier masters: see Checkpoint
  std::optional<MergerPublication> publication_;  // with shared memory, or a replica
  NoteInterval publication_notes_, checkpoint_notes_;  // that it could not be written
  // Whether the store still has the weights, where nobody waits for that: with shared memory.
  struct Look {
    explicit Look(Platform& platform) : errand(platform) {}
    std::uint64_t version = 0;  // that is looked for
    bool is_lost = false;       // of the errand until it is done
    StoreErrand errand;         // last: it uses the others
  };
  std::optional<Look> look_;
  bool is_published_with_merge_ = false;          // the last merge that was begun
  bool begun_ahead_ = false;                      // the same
  std::optional<MergeJob> expected_;
  std::unique_ptr<MergeAhead> ahead_;  // of it; uses the pass and what is above
};

}  // namespace speedo
