#include "sim/plan/plan_merger.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/train/merger.hpp>

#include "train/merge/merger_checkpoint.hpp"
#include "train/merge/merger_looks.hpp"

namespace speedo::sim {
namespace {

// As in train/merge/merger_publication: weights that nobody reads in the store go there so often.
constexpr std::chrono::seconds kPublishPause{1};
constexpr int kPublishShare = 20;

bool is_same(const MergeJob& a, const MergeJob& b) {
  return a.iteration == b.iteration && a.contributions == b.contributions;
}

// The rule is the master's, and the record of the weights lacks its histories.
bool has_histories_apart(const RunParts& parts) {
  return parts.update.kind == UpdateKind::kGradientOnly && !parts.update.replicated;
}

double rule_seconds_of(const RunParts& parts) {
  return has_histories_apart(parts) ? parts.costs.cluster().master.rule_seconds : 0.0;
}

// Of the master's product_seconds, the share of those products that are made of factors.
double replica_seconds_of(const RunParts& parts) {
  if (!parts.update.replicated) return 0.0;
  const MasterCosts& master = parts.costs.cluster().master;
  const std::vector<BucketCosts> buckets = buckets_of(parts.net);
  double all = 0.0, made = 0.0;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    all += buckets[bucket].product;
    made += buckets[bucket].product * static_cast<double>(parts.pieces.products_of(bucket));
  }
  return master.rule_seconds + (all > 0.0 ? master.product_seconds * made / all : 0.0);
}

std::uint64_t floats_of_all(const NetCosts& net) { return net.parameters * (1 + net.histories); }

// While all contributions are in memory it is written with the publications.
std::uint64_t checkpoint_floats_of(const RunParts& parts) {
  if (!has_histories_apart(parts) || parts.costs.all_share_memory()) return 0;
  return floats_of_all(parts.net) / checkpoint_interval(0, parts.net.parameters);
}

}  // namespace

PlanMerger::PlanMerger(const RunParts& parts, std::optional<std::size_t> shard)
    : parts_(parts),
      shard_(shard),
      rule_seconds_(rule_seconds_of(parts)),
      replica_seconds_(shard ? 0.0 : replica_seconds_of(parts)),
      checkpoint_floats_(checkpoint_floats_of(parts)) {}

CostModel::Client PlanMerger::client() const {
  return shard_ ? parts_.costs.merger_of(*shard_) : parts_.costs.master();
}

CostModel::Load PlanMerger::load_of(std::uint64_t floats, bool is_contribution) const {
  return {.floats = floats, .is_contribution = is_contribution, .shard = shard_};
}

CostModel::Load PlanMerger::copy_of(std::uint64_t floats) const {
  CostModel::Load copy = load_of(floats);
  copy.is_copy = true;
  return copy;
}

bool PlanMerger::has_copies() const {
  return shard_ && parts_.costs.cluster().store.copies && parts_.costs.shard_count() > 1 &&
         !parts_.update.replicated;
}

void PlanMerger::begin_work() {
  SPEEDO_ASSERT(!working_);
  working_ = true;
  working_since_ = parts_.queue.now();
}

void PlanMerger::end_work() {
  SPEEDO_ASSERT(working_);
  working_ = false;
  busy_ += parts_.queue.now() - working_since_;
}

void PlanMerger::expect(Job job) {
  SPEEDO_ASSERT(!ordered_ && !job.contributions.empty());
  // Another one is under way: what is ordered in its place is merged from the start.
  if (expected_) return;
  const double bytes =
      static_cast<double>(parts_.pieces.all_floats() * sizeof(float)) * share();
  if (!parts_.costs.cluster().master.merges_ahead ||
      bytes < static_cast<double>(MergerConfig{}.ahead_bytes_min)) {
    return;
  }
  expected_ = std::move(job);
  expected_at_ = parts_.queue.now();
  merged_.assign(parts_.pieces.count(), false);
  held_back_.clear();
  look_later(++expectation_);
}

void PlanMerger::look_later(std::uint64_t expectation) {
  const Instant pause = ahead_pause(parts_.queue.now() - expected_at_);
  parts_.queue.after(pause, [this, expectation] { look(expectation); });
}

void PlanMerger::look(std::uint64_t expectation) {
  if (!expected_ || expectation != expectation_ || ordered_) return;
  std::vector<std::size_t> ready = working_ ? std::vector<std::size_t>() : find_ready();
  if (ready.empty()) return look_later(expectation);
  begin_work();
  begin_pass(*expected_, std::move(ready), [this, expectation] {
    end_work();
    if (ordered_) return begin_merge();
    look(expectation);
  });
}

// Of those that are awaited next.
std::vector<std::size_t> PlanMerger::find_ready() const {
  const std::uint64_t piece_chunks =
      std::max<std::uint64_t>(1, parts_.pieces.floats(0) / kChunkElements);
  std::uint64_t looked = 0;
  std::vector<std::size_t> ready;
  for (std::size_t piece = parts_.pieces.count(); piece-- > 0 && looked < kChunksLookedFor;) {
    if (merged_[piece]) continue;
    looked += piece_chunks;
    const bool there = std::ranges::all_of(expected_->contributions, [&](const auto& each) {
      return parts_.contributions.is_there(each.worker, each.run, piece);
    });
    if (there) ready.push_back(piece);
  }
  return ready;
}

void PlanMerger::merge(Job job, std::function<void()> done) {
  SPEEDO_ASSERT(!ordered_);
  ordered_ = Ordered{std::move(job), std::move(done)};
  if (!working_) begin_merge();
}

void PlanMerger::begin_merge() {
  begin_work();
  if (!expected_ || !is_same(*expected_, ordered_->job)) {
    merged_.assign(parts_.pieces.count(), false);
    held_back_.clear();
  }
  expected_.reset();
  const auto in_store = std::ranges::count_if(
      ordered_->job.contributions,
      [this](const auto& each) { return !parts_.contributions.is_in_memory(each.worker); });
  parts_.costs.open(client(), static_cast<std::uint64_t>(in_store), [this] { merge_lacking(); });
}

void PlanMerger::merge_lacking() {
  std::vector<std::size_t> lacking;
  for (std::size_t piece = 0; piece < parts_.pieces.count(); ++piece) {
    if (!merged_[piece]) lacking.push_back(piece);
  }
  const std::size_t contributions = ordered_->job.contributions.size();
  const double whole_rule = parts_.net.clips ? rule_seconds_ : 0.0;
  begin_pass(ordered_->job, std::move(lacking), [this, contributions, whole_rule] {
    parts_.costs.add(client(), 0, parts_.costs.cluster().master.merge_seconds + whole_rule,
                     [this, contributions] {
                       for (const std::size_t piece : std::exchange(held_back_, {})) {
                         put(piece, contributions);
                       }
                       when_written([this] { end_merge(); });
                     });
  });
}

void PlanMerger::end_merge() {
  const auto end = [this] {
    const Ordered merged = std::move(*ordered_);
    ordered_.reset();
    merged.done();
    follow();
  };
  const bool is_in_memory = parts_.costs.all_share_memory();
  if (is_in_memory || (parts_.update.replicated && !shard_)) publish_behind();
  if (shard_ || is_in_memory) return end();
  parts_.costs.finish(client(), end);
}

void PlanMerger::publish_behind() {
  const Instant now = parts_.queue.now();
  const Instant pause = std::max<Instant>(kPublishPause, kPublishShare * publishing_took_);
  if (publishing_ || now - published_at_ < pause) return;
  publishing_ = true;
  published_at_ = now;
  const auto done = [this, now] {
    publishing_ = false;
    publishing_took_ = parts_.queue.now() - now;
  };
  if (!has_histories_apart(parts_)) return publish(done);
  const auto checkpoint_there = [this, done] { publish(done); };
  parts_.costs.write(
      client(), {.floats = floats_of_all(parts_.net)},
      [this, checkpoint_there] { parts_.costs.finish(client(), checkpoint_there); });
}

void PlanMerger::follow_step(std::function<void()> done) {
  publish_behind();
  begin_work();
  followed_ = std::move(done);
  follow();
}

// Its own end of work: what was ordered or is expected comes after it.
void PlanMerger::follow() {
  const auto next = [this] {
    end_work();
    if (followed_) std::exchange(followed_, nullptr)();
    if (ordered_) begin_merge();
  };
  if (checkpoint_floats_ > 0) return write_checkpoint(next);
  if (replica_seconds_ <= 0.0) return next();
  parts_.costs.add(client(), 0, replica_seconds_, next);
}

void PlanMerger::write_checkpoint(std::function<void()> done) {
  const auto written = [this, done = std::move(done)] { parts_.costs.finish(client(), done); };
  if (!has_copies()) return parts_.costs.write(client(), load_of(checkpoint_floats_), written);
  parts_.costs.write(client(), load_of(checkpoint_floats_), [] {});
  parts_.costs.write(client(), copy_of(checkpoint_floats_), written);
}

void PlanMerger::publish(std::function<void()> done) {
  const std::uint64_t floats =
      parts_.update.replicated ? floats_of_all(parts_.net) : parts_.pieces.all_floats();
  parts_.costs.write(parts_.costs.master(), {.floats = floats},
                     [this, done = std::move(done)] {
                       parts_.costs.finish(parts_.costs.master(), done);
                     });
}

void PlanMerger::begin_pass(const Job& job, std::vector<std::size_t> pieces,
                            std::function<void()> done) {
  if (pieces.empty()) return done();
  const std::size_t contributions = job.contributions.size();
  const auto in_store = static_cast<std::size_t>(
      std::ranges::count_if(job.contributions, [this](const auto& each) {
        return !parts_.contributions.is_in_memory(each.worker);
      }));
  auto pass = std::make_shared<Pass>();
  pass->left = pieces.size();
  pass->pieces = std::move(pieces);
  pass->done = std::move(done);
  for (const std::size_t piece : pass->pieces) {
    if (in_store == 0) add(pass, piece, contributions);
    for (std::size_t i = 0; i < in_store; ++i) {
      const bool last = i + 1 == in_store;
      parts_.costs.read(client(), load_of(parts_.pieces.floats(piece), true),
                        [this, pass, piece, contributions, last] {
                          if (last) add(pass, piece, contributions);
                        });
    }
  }
}

void PlanMerger::add(const std::shared_ptr<Pass>& pass, std::size_t piece,
                     std::size_t contributions) {
  const std::uint64_t floats = parts_.pieces.floats(piece);
  const double part =
      static_cast<double>(floats) / static_cast<double>(parts_.pieces.all_floats());
  const double rule = parts_.net.clips ? 0.0 : rule_seconds_ * part * share();
  const auto own = static_cast<std::uint64_t>(static_cast<double>(floats) * share());
  parts_.costs.add(client(), own * contributions, rule, [this, pass, piece, contributions] {
    merged_[piece] = true;
    const bool waits = parts_.net.clips && rule_seconds_ > 0.0;
    if (waits) {
      held_back_.push_back(piece);
    } else {
      put(piece, contributions);
    }
    if (--pass->left == 0) pass->done();
  });
}

// The next weights', and in SpeeDO's elastic form what goes back to each worker.
void PlanMerger::put(std::size_t piece, std::size_t contributions) {
  if (parts_.costs.all_share_memory()) return;  // they are read where they are
  const std::uint64_t records =
      1 + (parts_.update.kind == UpdateKind::kElasticMaster ? contributions : 0);
  write(parts_.pieces.merged_floats(piece) * records, piece);
}

void PlanMerger::write(std::uint64_t floats, std::size_t piece) {
  const auto written = [this, piece] {
    if (on_written) on_written(piece);
    if (--writing_ == 0 && written_) std::exchange(written_, nullptr)();
  };
  writing_ += 1;
  parts_.costs.write(client(), load_of(floats), written);
  if (!has_copies()) return;
  writing_ += 1;
  parts_.costs.write(client(), copy_of(floats), written);
}

void PlanMerger::when_written(std::function<void()> done) {
  if (writing_ == 0) return done();
  written_ = std::move(done);
}

PlanMergers::PlanMergers(const RunParts& parts) : parts_(parts), replica_(parts) {
  for (std::size_t shard = 0; shard < parts.costs.shard_count(); ++shard) {
    if (parts.costs.share_of(shard) <= 0.0) continue;  // a short record has nothing there
    mergers_.push_back(std::make_unique<PlanMerger>(parts, shard));
    if (!parts.update.replicated) continue;
    mergers_.back()->on_written = [this](std::size_t piece) { written(piece); };
  }
  if (mergers_.empty()) mergers_.push_back(std::make_unique<PlanMerger>(parts));
}

// Of a step: the master reads a piece as soon as every shard has written its part of it.
void PlanMergers::written(std::size_t piece) {
  written_.resize(parts_.pieces.count());
  if (++written_[piece] != mergers_.size()) return;
  parts_.costs.read(parts_.costs.master(), {.floats = parts_.pieces.merged_floats(piece)}, [this] {
    read_ += 1;
    end_step_if_read();
  });
}

void PlanMergers::end_step_if_read() {
  if (read_ < parts_.pieces.count() || !finished_) return;
  written_.clear();
  read_ = 0;
  follows_ = true;
  std::exchange(finished_, nullptr)();
  replica_.follow_step([this] {
    follows_ = false;
    for (const auto& order : std::exchange(held_back_, {})) order();
  });
}

// The end of what all shards have made. A step counts when the master has read it.
void PlanMergers::finish(std::function<void()> done) {
  parts_.costs.finish(parts_.costs.master(), [this, done = std::move(done)] {
    if (!parts_.update.replicated) return done();
    finished_ = done;
    end_step_if_read();
  });
}

void PlanMergers::expect(const MergeJob& job) {
  if (parts_.costs.shard_count() == 0) return mergers_.front()->expect(job);
  if (follows_) return held_back_.push_back([this, job] { expect(job); });
  for (std::size_t shard = 0; shard < mergers_.size(); ++shard) {
    parts_.costs.message_to_merger(shard, [this, shard, job] { mergers_[shard]->expect(job); });
  }
}

void PlanMergers::merge(const MergeJob& job, std::function<void()> done) {
  if (parts_.costs.shard_count() == 0) return mergers_.front()->merge(job, std::move(done));
  if (follows_) return held_back_.push_back([this, job, done] { merge(job, done); });
  const auto left = std::make_shared<std::size_t>(mergers_.size());
  const auto answered = [this, left, done = std::move(done)] {
    if (--*left == 0) finish(done);
  };
  for (std::size_t shard = 0; shard < mergers_.size(); ++shard) {
    parts_.costs.message_to_merger(shard, [this, shard, job, answered] {
      mergers_[shard]->merge(job, [this, shard, answered] {
        parts_.costs.message_from_merger(shard, answered);
      });
    });
  }
}

Instant PlanMergers::busy() const {
  Instant most = replica_.busy();
  for (const auto& merger : mergers_) most = std::max(most, merger->busy());
  return most;
}

}  // namespace speedo::sim
