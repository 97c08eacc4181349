#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/update.hpp>

#include "sim/plan/cost_model.hpp"
#include "sim/plan/plan_pieces.hpp"
#include "sim/plan/plan_run.hpp"

namespace speedo::sim {

// The master's merger as a plan has it (production's: train/merge/merger, merge_ahead): one job at
// a time. A merge opens its contributions, then reads, adds and writes piece by piece, each
// overlapped with the others; when all is written the record is finished. An expected merge is
// begun with the pieces that all of its contributions have put, looked for again and again, last
// pieces first; its order then finds them done. A rule of the master's that clips adds everything
// before it writes. Checkpoints of its histories are written behind a merge. Contributions in
// memory are added where they are; while all are, the weights and such a checkpoint go to the store
// now and then, behind everything (train/merge/merger_publication).
//
// A shard's merger does so with its part of every piece, beside its server, and writes a copy to
// the next; when its part is written it has done, and the master writes the record's end.
//
// Of replicated updates it writes steps; the rule, and the products of all factors, follow behind a
// merge, and now and then weights and histories for newcomers.
//
// Assumes: what looking costs is nothing; contributions are what was expected.
class PlanMerger {
 public:
  // `shard`: whose merger it is; none: it is the master's, of everything.
  explicit PlanMerger(const RunParts& parts, std::optional<std::size_t> shard = std::nullopt);

  void expect(MergeJob job);
  void merge(MergeJob job, std::function<void()> done);
  // The weights as they are become a new version.
  void publish(std::function<void()> done);
  // Of replicated updates whose steps shards make: the master's own weights follow one. Requires:
  // the one before was followed.
  void follow_step(std::function<void()> done);
  std::function<void(std::size_t piece)> on_written = nullptr;  // its part of it

  // During which it was at work.
  Instant busy() const { return busy_; }

 private:
  using Job = MergeJob;
  struct Ordered {
    Job job;
    std::function<void()> done;
  };
  // Pieces that are read, added and put.
  struct Pass {
    std::vector<std::size_t> pieces;
    std::function<void()> done;   // all are added
    std::size_t left = 0;
  };

  void look(std::uint64_t expectation);
  void look_later(std::uint64_t expectation);
  std::vector<std::size_t> find_ready() const;
  void begin_merge();
  void merge_lacking();
  void end_merge();
  void follow();
  void write_checkpoint(std::function<void()> done);
  void publish_behind();
  double share() const { return shard_ ? parts_.costs.share_of(*shard_) : 1.0; }
  CostModel::Client client() const;
  CostModel::Load load_of(std::uint64_t floats, bool is_contribution = false) const;
  // The same, on the next shard's server.
  CostModel::Load copy_of(std::uint64_t floats) const;
  bool has_copies() const;
  void begin_pass(const Job& job, std::vector<std::size_t> pieces, std::function<void()> done);
  void write(std::uint64_t floats, std::size_t piece);
  void add(const std::shared_ptr<Pass>& pass, std::size_t piece, std::size_t contributions);
  void put(std::size_t piece, std::size_t contributions);
  void when_written(std::function<void()> done);
  void begin_work();
  void end_work();

  const RunParts parts_;
  const std::optional<std::size_t> shard_;
  const double rule_seconds_;      // of all parameters; 0: the rule is the workers'
  const double replica_seconds_;   // behind each merge, until its own weights have followed
  const std::uint64_t checkpoint_floats_;  // behind each merge, on average
  std::optional<Job> expected_;
  std::uint64_t expectation_ = 0;  // counts them
  Instant expected_at_{0};
  std::vector<bool> merged_;       // pieces of the merge that is expected or under way
  std::optional<Ordered> ordered_;
  bool working_ = false;
  std::size_t writing_ = 0;        // pieces on their way
  std::function<void()> written_, followed_;
  std::vector<std::size_t> held_back_;  // pieces that are added, and not put yet
  Instant working_since_{0}, busy_{0};
  Instant published_at_{0}, publishing_took_{0};  // behind
  bool publishing_ = false;
};

// All mergers of a plan as one: the master's own, or those of its shards, which hear of their
// orders and answer by messages (train/parts/joined_engine, joined_steps).
class PlanMergers {
 public:
  explicit PlanMergers(const RunParts& parts);

  void expect(const MergeJob& job);
  void merge(const MergeJob& job, std::function<void()> done);
  void publish(std::function<void()> done) { mergers_.front()->publish(std::move(done)); }

  // During which the busiest was at work.
  Instant busy() const;

 private:
  void finish(std::function<void()> done);
  void written(std::size_t piece);
  void end_step_if_read();

  const RunParts parts_;
  PlanMerger replica_;  // the master's, where shards make steps
  std::vector<std::unique_ptr<PlanMerger>> mergers_;
  // Of a step that shards make: how many have written each piece, how many pieces the master has
  // read, and what follows when it has read all.
  std::vector<std::size_t> written_;
  std::size_t read_ = 0;
  std::function<void()> finished_;
  bool follows_ = false;                          // the master's weights, the last step
  std::vector<std::function<void()>> held_back_;  // orders, until they have
};

}  // namespace speedo::sim
