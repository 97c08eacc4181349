#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <speedo/train/checkpoint.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/messages.hpp>
#include <speedo/train/update.hpp>

#include "sim/check/reference_update.hpp"
#include "sim/check/violations.hpp"

namespace speedo::sim {

// The weights as they must be: computed anew from every contribution that was merged, by formulas
// that share no code with the merger. Knows what every version published by any master was made of,
// so that a master that goes on from one of them is held to it.
class Lineage {
 public:
  using Rule = ReferenceUpdate::Rule;
  Lineage(std::vector<UpdateSpec> stages, std::vector<float> start, Rule rule,
          Violations& violations);

  // The job is merged in parts: chunk C by part C modulo their number. A part that was opened anew
  // goes on with histories of the rule that are some merges older than its weights, as
  // `interval` (MergerConfig::publish_interval) says.
  struct Parts {
    std::size_t parts = 1, chunk_elements = 0;
    std::uint64_t interval = 0;
  };
  void merged_in_parts(const Parts& parts) { parts_ = parts; }

  // A worker has put this into the store.
  void contributed(RunId run, std::vector<float> values);
  bool knows(RunId run) const { return contributions_.contains(run.value); }
  // A master begins at this checkpoint.
  void begin(std::uint64_t term, const Checkpoint& start);
  // It published this: `merge` is done, and `now` what it is at.
  struct PublishedMerge {
    std::uint64_t term = 0;
    const MergeJob& job;
    const MergeResult& result;
    const Merger::Copy& now;
    std::uint64_t iteration = 0;  // after it
    bool may_reject = false;      // what its workers put may have been erased
    std::span<const std::uint64_t> shards;  // of the data, that went into it
    // By another master than its own, which may not know of it: if the store loses it then, its own
    // takes it back, and publishes something else under its number.
    bool is_seen_by_another = false;
  };
  void merged(const PublishedMerge& merge);
  // It was put off: the weights are as before, and what it has named as lost may have been.
  void put_off(const PublishedMerge& merge);
  void entered_stage(std::uint64_t term, const Merger::Copy& now);
  // The same of what nobody could read: the next version is taken as it is, and the one after it,
  // which histories that were not seen lead to.
  void unseen(std::uint64_t term, Version version, std::span<const std::uint64_t> shards,
              bool is_seen_by_another = false);
  // The same where the master has said what was merged: the histories are reckoned.
  void unseen(const PublishedMerge& merge);
  // The same of a stage, which begins with the weights that the last merge has made.
  void unseen_stage(std::uint64_t term, Version version);
  // The store has lost or damaged this contribution, or may have lost all that were made so far.
  void may_be_lost(RunId run) { lost_.insert(run.value); }
  void all_may_be_lost();
  // Neither merged nor to be given out again for certain: dropped, or rejected.
  void consumed(std::uint64_t term, std::uint64_t shard);
  // What was made of it is lost: it has to be given out again.
  void not_consumed(std::uint64_t term, std::uint64_t shard) {
    branches_[term].consumed.erase(shard);
  }

  bool knows(std::uint64_t term, Version version) const;
  // A worker begins a run with these weights: of this version, or of a newer one.
  void check_base(std::uint64_t term, const TrainMessage& order, const std::vector<float>& weights);
  bool is_finite(RunId run) const;  // what was contributed
  bool is_merged(std::uint64_t term, std::uint64_t shard) const;
  // At the end: every shard below `fresh` was merged, or dropped, or is still open; and nobody has
  // begun with older weights than ordered.
  void check_complete(std::uint64_t term, std::uint64_t fresh,
                      const std::set<std::uint64_t>& open);

 private:
  using Values = std::vector<float>;
  struct State {
    Values weights;
    Values reckoned;  // where nobody could read them: what was merged makes these
    std::vector<Values> histories;
    std::string session;           // its state, as the version carries it; empty: not seen
    std::size_t shards = 0;        // of the log of its branch, that are part of it
    bool is_seen_by_another = false;  // see PublishedMerge
    bool is_start = false;  // what the term's master began with, as it may have put it again
  };
  // The shards used by one master and, before it, by those whose work it goes on with.
  struct Branch {
    std::vector<std::uint64_t> log;
    std::set<std::uint64_t> merged, consumed;
    State state;
    int unseen = 0;  // versions, from the next on, whose weights are taken as they are
  };
  // A run of the term that begins with an earlier master's weights, or with those of the next
  // version.
  struct Suspect {
    std::uint64_t term;
    Values weights;
    std::string message;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // term, version
  using Published = std::map<Key, State>;

  Published::const_iterator origin_of(const Checkpoint& start) const;
  void go_on_from(const Published::value_type& origin, Branch& branch) const;
  static void take_shards_of(const std::string& session, Branch& branch);
  void take_in(Branch& branch, std::span<const std::uint64_t> shards);
  void take_unseen(std::uint64_t term, Version version, std::span<const std::uint64_t> shards,
                   bool is_seen_by_another);
  std::vector<const Values*> accepted(const PublishedMerge& merge);
  void check_rejected(const PublishedMerge& merge, const MergeJob::Contribution& each);
  State expected(const State& before, const PublishedMerge& merge,
                 const std::vector<const Values*>& parts) const;
  State expected_by_parts(const Branch& branch, const PublishedMerge& merge,
                          const std::vector<const Values*>& parts);
  std::vector<std::vector<Values>> older_histories() const;
  bool fits(const Values& found, const Values& wanted, std::size_t part) const;
  std::size_t part_of(std::size_t element) const;
  void compare(const Values& found, const Values& wanted, const char* what);
  void remember(std::uint64_t term, Version version, const Merger::Copy& now);
  void remember_reckoned(std::uint64_t term, Version version);
  Published::const_iterator taken_back(const PublishedMerge& merge) const;
  void forget_taken_back(const PublishedMerge& merge);
  void settle_suspects(std::uint64_t term, const State& next);

  const ReferenceUpdate update_;
  const Values start_;
  std::optional<Parts> parts_;
  bool lost_data_ = false;
  Violations& violations_;
  std::map<std::uint64_t, Values> contributions_;  // by run: unique in a job
  std::set<std::uint64_t> merged_runs_, lost_;
  Published published_;
  std::vector<Suspect> suspects_;
  std::map<std::uint64_t, Branch> branches_;       // by term
};

}  // namespace speedo::sim
