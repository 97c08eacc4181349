#include "sim/check/lineage.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "speedo.pb.h"

namespace speedo::sim {
namespace {

// The merger adds floats in an order of its own.
constexpr double kTolerance = 2e-5;

bool is_off(float found, float wanted) {
  const double allowed = kTolerance * (1.0 + std::abs(static_cast<double>(wanted)));
  return !(std::abs(static_cast<double>(found) - wanted) <= allowed);
}

bool near(const std::vector<float>& found, const std::vector<float>& wanted) {
  return std::ranges::equal(found, wanted, [](float a, float b) { return !is_off(a, b); });
}

// Whether, by a session's state, a shard of the data was used up.
bool has_used(const std::string& session) {
  record::Session state;
  if (session.empty() || !state.ParseFromString(session)) return false;
  return state.data_fresh() > static_cast<std::uint64_t>(state.data_open_size());
}

}  // namespace

Lineage::Lineage(std::vector<UpdateSpec> stages, std::vector<float> start, Rule rule,
                 Violations& violations)
    : update_(std::move(stages), rule), start_(std::move(start)), violations_(violations) {}

void Lineage::contributed(RunId run, std::vector<float> values) {
  contributions_[run.value] = std::move(values);
}

void Lineage::all_may_be_lost() {
  lost_data_ = true;
  for (const auto& [run, values] : contributions_) lost_.insert(run);
}

void Lineage::begin(std::uint64_t term, const Checkpoint& start) {
  Branch branch;
  branch.state.weights = start.weights;
  branch.state.histories = start.histories;
  const auto origin = origin_of(start);
  const bool is_found = origin != published_.end();
  const bool is_known = is_found && !start.session.empty() &&
                        origin->second.session == start.session;
  // Also with what a master has put that merged nothing, or died as it published its first stage;
  // but where no codec lets a change pass, weights are still those of the start after merges.
  const bool is_start = start.weights == start_;
  const bool anew = start.version.value == 0 && is_start && !is_known && !has_used(start.session);
  violations_.expect(Check::kStart, is_start || is_found,
                     "a master goes on from weights that nobody published");
  if (!anew && is_found) go_on_from(*origin, branch);
  // Another version of this number may be back with the store, which was taken back and not seen.
  const bool is_reckoned = is_found && origin->second.weights.empty();
  if (!anew && is_reckoned && lost_data_) take_shards_of(start.session, branch);
  branch.state.shards = branch.log.size();
  // Mergers of parts put it once more, as this master's, and a server that goes back shows that.
  // His first weights are the same, too.
  if (start.version.value != 0) {
    State again = branch.state;
    again.session = start.session;
    again.is_start = true;
    published_.emplace(std::pair(term, start.version.value), std::move(again));
  }
  branches_[term] = std::move(branch);
}

// Without noise, or where no codec lets a change pass, many versions have equal weights: the one
// with this session's state is meant, or one whose state was not seen, and of several the newest.
Lineage::Published::const_iterator Lineage::origin_of(const Checkpoint& start) const {
  auto origin = published_.end();
  const auto rank = [&](const State& state) {
    return state.session == start.session ? 2 : state.session.empty() ? 1 : 0;
  };
  const bool by_file = start.version.value == 0;  // a snapshot has weights and no version
  for (auto each = published_.begin(); each != published_.end(); ++each) {
    const auto& [key, state] = *each;
    const bool may_be = by_file || key.second == start.version.value;
    const bool is_it = state.weights == start.weights ||
                       (state.weights.empty() && (!by_file || near(start.weights, state.reckoned)));
    // Those of parts are not known to the bit, as nobody shows them.
    const bool histories = parts_ || start.histories.empty() || state.histories.empty() ||
                           start.histories == state.histories;
    if (!may_be || !is_it || !histories) continue;
    if (origin == published_.end() || rank(state) >= rank(origin->second)) origin = each;
  }
  return origin;
}

void Lineage::go_on_from(const Published::value_type& origin, Branch& branch) const {
  const Branch& parent = branches_.at(origin.first.first);
  for (std::size_t i = 0; i < origin.second.shards; ++i) {
    branch.log.push_back(parent.log[i]);
    if (parent.merged.contains(parent.log[i])) branch.merged.insert(parent.log[i]);
  }
  branch.consumed = parent.consumed;
  // A checkpoint has no histories of parts, which keep theirs through stages that use none.
  if (parts_) branch.state.histories = origin.second.histories;
}

// As the state says that came with the weights.
void Lineage::take_shards_of(const std::string& session, Branch& branch) {
  record::Session state;
  if (session.empty() || !state.ParseFromString(session)) return;
  const std::set<std::uint64_t> open(state.data_open().begin(), state.data_open().end());
  branch.log.clear();
  branch.merged.clear();
  for (std::uint64_t shard = 0; shard < state.data_fresh(); ++shard) {
    if (open.contains(shard)) continue;
    branch.merged.insert(shard);
    branch.log.push_back(shard);
  }
}

void Lineage::remember(std::uint64_t term, Version version, const Merger::Copy& now) {
  Branch& branch = branches_[term];
  branch.state = State{.weights = now.weights,
                       .reckoned = {},
                       .histories = now.histories,
                       .session = now.state,
                       .shards = branch.log.size()};
  settle_suspects(term, branch.state);
  published_[{term, version.value}] = branch.state;
}

void Lineage::entered_stage(std::uint64_t term, const Merger::Copy& now) {
  const auto found = branches_.find(term);
  if (found == branches_.end()) return;
  Branch& branch = found->second;
  if (branch.unseen == 0) {
    compare(now.weights, branch.state.weights, "a new stage changed the weights");
  }
  branch.unseen = std::min(1, branch.unseen);
  Merger::Copy known = now;
  if (parts_) known.histories = branch.state.histories;
  remember(term, now.version, known);
}

void Lineage::take_in(Branch& branch, std::span<const std::uint64_t> shards) {
  for (const std::uint64_t shard : shards) {
    violations_.expect(Check::kOnce, branch.merged.insert(shard).second,
                       "a shard of the data merged twice");
    branch.log.push_back(shard);
  }
}

void Lineage::unseen(std::uint64_t term, Version version, std::span<const std::uint64_t> shards,
                     bool is_seen_by_another) {
  if (knows(term, version)) return;
  take_unseen(term, version, shards, is_seen_by_another);
  settle_suspects(term, published_[{term, version.value}]);
}

void Lineage::take_unseen(std::uint64_t term, Version version,
                          std::span<const std::uint64_t> shards, bool is_seen_by_another) {
  Branch& branch = branches_[term];
  take_in(branch, shards);
  branch.unseen = 2;
  State& state = published_[{term, version.value}];
  state.shards = branch.log.size();
  state.is_seen_by_another = is_seen_by_another;
}

void Lineage::unseen(const PublishedMerge& merge) {
  forget_taken_back(merge);
  const Version version = merge.result.version;
  if (knows(merge.term, version)) return;
  Branch& branch = branches_[merge.term];
  const std::vector<const Values*> parts = accepted(merge);
  if (!parts.empty()) branch.state = expected(branch.state, merge, parts);
  take_unseen(merge.term, version, merge.shards, false);
  remember_reckoned(merge.term, version);
  settle_suspects(merge.term, published_[{merge.term, version.value}]);
}

void Lineage::unseen_stage(std::uint64_t term, Version version) {
  if (!knows(term, version)) remember_reckoned(term, version);
}

void Lineage::remember_reckoned(std::uint64_t term, Version version) {
  const Branch& branch = branches_[term];
  State& state = published_[{term, version.value}];
  state.reckoned = branch.state.weights;
  state.histories = branch.state.histories;
  state.shards = branch.log.size();
}

bool Lineage::knows(std::uint64_t term, Version version) const {
  return published_.contains({term, version.value});
}

// Newer ones may not be known yet; those of workers that keep weights of their own are nobody's. A
// worker of a master that was replaced unawares reads what its successor has published; nobody
// reads what was before, but weights that are not known yet may have the same values.
void Lineage::check_base(std::uint64_t term, const TrainMessage& order,
                         const std::vector<float>& weights) {
  if (is_elastic(update_.stage(order.stage).kind)) return;
  for (auto each = published_.rbegin(); each != published_.rend(); ++each) {
    const auto& [key, state] = *each;
    if (state.is_start) {
      // Its successor's first weights may be in the store before he knows.
      if (key.first > term && state.weights == weights) return;
      continue;
    }
    const bool is_it = state.weights == weights;
    const bool is_near = state.weights.empty() && near(weights, state.reckoned);
    if (key.first >= term && key.second >= order.version && (is_it || is_near)) return;
    if (key.first > term || !is_it) continue;
    suspects_.push_back({term, weights,
                         fmt::format("run {} begins with weights of version {} of master {}, "
                                     "ordered was {}",
                                     order.run, key.second, key.first, order.version)});
    return;
  }
}

// The next version of the term is known: its weights, or what was merged into it, or neither.
void Lineage::settle_suspects(std::uint64_t term, const State& next) {
  std::erase_if(suspects_, [&](const Suspect& each) {
    if (each.term != term) return false;
    const bool has_read_newer = next.weights.empty()
                                    ? next.reckoned.empty() || near(each.weights, next.reckoned)
                                    : each.weights == next.weights;
    if (!has_read_newer) violations_.report(Check::kOrders, each.message);
    return true;
  });
}

bool Lineage::is_finite(RunId run) const {
  const auto found = contributions_.find(run.value);
  return found != contributions_.end() &&
         std::ranges::all_of(found->second, [](float x) { return std::isfinite(x); });
}

bool Lineage::is_merged(std::uint64_t term, std::uint64_t shard) const {
  const auto found = branches_.find(term);
  return found != branches_.end() && found->second.merged.contains(shard);
}

void Lineage::consumed(std::uint64_t term, std::uint64_t shard) {
  branches_[term].consumed.insert(shard);
}

// Of the term's versions from the one that its master reports on, the first that only another
// master has seen; the store has lost it since, and its own has taken it back.
Lineage::Published::const_iterator Lineage::taken_back(const PublishedMerge& merge) const {
  const Key reported{merge.term, merge.result.version.value};
  for (auto each = published_.lower_bound(reported);
       each != published_.end() && each->first.first == merge.term; ++each) {
    const bool is_another = each->first != reported || (!merge.now.weights.empty() &&
                                                        each->second.weights != merge.now.weights);
    if (is_another && each->second.is_seen_by_another && lost_data_) return each;
  }
  return published_.end();
}

// The weights before it are not known: those that replace it are taken as they are.
void Lineage::forget_taken_back(const PublishedMerge& merge) {
  const auto found = taken_back(merge);
  if (found == published_.end()) return;
  Branch& branch = branches_[merge.term];
  const std::size_t kept = found == published_.begin() ? 0 : std::prev(found)->second.shards;
  for (std::size_t i = kept; i < branch.log.size(); ++i) branch.merged.erase(branch.log[i]);
  branch.log.resize(std::min(kept, branch.log.size()));
  published_.erase(found);
  branch.unseen = 2;
  for (const auto& each : merge.job.contributions) merged_runs_.erase(each.run.value);
}

void Lineage::merged(const PublishedMerge& merge) {
  forget_taken_back(merge);
  Branch& branch = branches_[merge.term];
  if (const auto known = published_.find({merge.term, merge.now.version.value});
      known != published_.end()) {
    if (known->second.weights.empty()) {
      known->second.weights = merge.now.weights;
      branch.unseen = std::min(1, branch.unseen);
    }
    // Seen in the store before the merger knew that it was done, or nothing was merged.
    compare(merge.now.weights, known->second.weights, "not the weights that were published");
    if (!parts_) known->second.histories = merge.now.histories;
    branch.state = known->second;
    return;
  }
  const std::vector<const Values*> parts = accepted(merge);
  Merger::Copy now = merge.now;
  if (!parts.empty()) {
    State wanted = parts_ ? expected_by_parts(branch, merge, parts)
                          : expected(branch.state, merge, parts);
    if (branch.unseen == 0) {
      compare(merge.now.weights, wanted.weights, "weights are not what was merged");
    }
    branch.unseen = std::max(0, branch.unseen - 1);
    for (std::size_t i = 0; i < wanted.histories.size() && i < merge.now.histories.size(); ++i) {
      compare(merge.now.histories[i], wanted.histories[i], "histories are not what was merged");
    }
    if (parts_) now.histories = std::move(wanted.histories);
    violations_.expect(Check::kPublication, merge.now.version == merge.result.version,
                       "another version than reported");
    take_in(branch, merge.shards);
  } else {
    if (branch.unseen == 0) {
      compare(merge.now.weights, branch.state.weights, "a merge of nothing changed the weights");
    }
    branch.unseen = std::min(1, branch.unseen);
    if (parts_) now.histories = branch.state.histories;
  }
  remember(merge.term, merge.now.version, now);
  published_[{merge.term, merge.now.version.value}].is_seen_by_another = merge.is_seen_by_another;
}

void Lineage::put_off(const PublishedMerge& merge) {
  forget_taken_back(merge);
  for (const auto& each : merge.job.contributions) {
    if (std::ranges::count(merge.result.rejected, each.worker) > 0) check_rejected(merge, each);
  }
  const auto known = published_.find({merge.term, merge.now.version.value});
  if (known == published_.end() || known->second.weights.empty()) return;
  compare(merge.now.weights, known->second.weights, "a merge that was put off changed the weights");
}

// Of the contributions, those that were not rejected, in their order.
std::vector<const Lineage::Values*> Lineage::accepted(const PublishedMerge& merge) {
  std::vector<const Values*> parts;
  for (const auto& each : merge.job.contributions) {
    const auto found = contributions_.find(each.run.value);
    const bool rejected = std::ranges::count(merge.result.rejected, each.worker) > 0;
    if (found == contributions_.end()) {
      violations_.expect(Check::kOnce, rejected, "merged what nobody contributed");
      continue;
    }
    if (rejected) {
      check_rejected(merge, each);
      continue;
    }
    const bool is_first = merged_runs_.insert(each.run.value).second;
    violations_.expect(Check::kOnce, is_first, "a contribution merged twice");
    violations_.expect(Check::kWeights, is_finite(each.run), "merged what is not finite");
    parts.push_back(&found->second);
  }
  return parts;
}

void Lineage::check_rejected(const PublishedMerge& merge, const MergeJob::Contribution& each) {
  if (!is_finite(each.run) || merge.may_reject || lost_.contains(each.run.value)) return;
  violations_.report(
      Check::kRejection,
      fmt::format("a good contribution of worker {} was rejected", each.worker.value));
}

Lineage::State Lineage::expected(const State& before, const PublishedMerge& merge,
                                 const std::vector<const Values*>& parts) const {
  std::vector<ReferenceUpdate::Contribution> contributions;
  for (const auto& each : merge.job.contributions) {
    if (contributions.size() == parts.size()) break;
    if (std::ranges::count(merge.result.rejected, each.worker) > 0) continue;
    contributions.push_back({*parts[contributions.size()], each.weight, each.share});
  }
  State after = before;
  update_.apply(after.weights, after.histories, merge.job, contributions);
  return after;
}

std::size_t Lineage::part_of(std::size_t element) const {
  return element / parts_->chunk_elements % parts_->parts;
}

bool Lineage::fits(const Values& found, const Values& wanted, std::size_t part) const {
  for (std::size_t i = 0; i < found.size() && i < wanted.size(); ++i) {
    if (part_of(i) == part && is_off(found[i], wanted[i])) return false;
  }
  return found.size() == wanted.size();
}

// Those that a part which is opened anew may go on with, the newest first: its checkpoint's, or
// none if it has no checkpoint.
std::vector<std::vector<Lineage::Values>> Lineage::older_histories() const {
  constexpr std::uint64_t kUnderWay = 3;  // versions: written, asked for, and their answers lost
  const std::uint64_t oldest = std::max<std::uint64_t>(1, parts_->interval) + kUnderWay;
  std::vector<std::vector<Values>> older;
  std::uint64_t merges = 0;
  std::size_t shards = 0;  // a master that begins publishes what was there already
  for (auto each = published_.rbegin(); each != published_.rend(); ++each) {
    const State& state = each->second;
    // Merges of a stage that uses no histories leave those of the stage before.
    const bool has_others = older.empty() || state.histories != older.back();
    merges += state.shards != shards && has_others ? 1 : 0;
    shards = state.shards;
    if (merges > oldest + 1 && !lost_data_) return older;
    older.push_back(state.histories);
  }
  older.emplace_back();
  return older;
}

// Of a part whose weights are not what its newest histories lead to, with older ones.
Lineage::State Lineage::expected_by_parts(const Branch& branch, const PublishedMerge& merge,
                                          const std::vector<const Values*>& parts) {
  State wanted = expected(branch.state, merge, parts);
  if (update_.stage(merge.job.stage).kind != UpdateKind::kGradientOnly) return wanted;
  for (std::size_t part = 0; part < parts_->parts; ++part) {
    if (fits(merge.now.weights, wanted.weights, part)) continue;
    for (const std::vector<Values>& histories : older_histories()) {
      State before = branch.state;
      before.histories = histories;
      const State other = expected(before, merge, parts);
      if (!fits(merge.now.weights, other.weights, part)) continue;
      for (std::size_t i = 0; i < wanted.weights.size(); ++i) {
        if (part_of(i) != part) continue;
        wanted.weights[i] = other.weights[i];
        wanted.histories.front()[i] = other.histories.front()[i];
      }
      break;
    }
  }
  // What a step has taken from the weights, exactly: nobody shows histories of parts.
  for (std::size_t i = 0; i < wanted.weights.size(); ++i) {
    wanted.histories.front()[i] = branch.state.weights[i] - merge.now.weights[i];
  }
  return wanted;
}

void Lineage::compare(const Values& found, const Values& wanted, const char* what) {
  if (violations_.any()) return;
  if (found.size() != wanted.size()) {
    return violations_.report(Check::kWeights, fmt::format("{}: {} floats, not {}", what,
                                                            found.size(), wanted.size()));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!is_off(found[i], wanted[i])) continue;
    return violations_.report(
        Check::kWeights,
        fmt::format("{}: element {} is {}, should be {}", what, i, found[i], wanted[i]));
  }
}

void Lineage::check_complete(std::uint64_t term, std::uint64_t fresh,
                             const std::set<std::uint64_t>& open) {
  // The term's last version is known: no newer one can have been read.
  for (const Suspect& each : suspects_) {
    if (each.term == term) violations_.report(Check::kOrders, each.message);
  }
  const Branch& branch = branches_[term];
  for (std::uint64_t shard = 0; shard < fresh; ++shard) {
    const bool merged = branch.merged.contains(shard), is_open = open.contains(shard);
    if (merged && is_open) {
      violations_.report(Check::kOnce,
                         fmt::format("shard {} is merged, and yet to be given out", shard));
    }
    if (!merged && !is_open && !branch.consumed.contains(shard)) {
      violations_.report(Check::kOnce, fmt::format("shard {} of the data is lost", shard));
    }
  }
}

}  // namespace speedo::sim
