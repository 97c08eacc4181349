// One merge: the contributions are read, merged and written chunk by chunk (MergerPass); the
// manifest goes last; then the next weights become the weights. A contribution at fault ends the
// pass; the merge begins again without it, so nothing of it remains. A failed merge leaves all as
// it was.

#include "train/merge/merger_engine.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "base/log.hpp"

namespace speedo {

Result<MergeParty> MergerEngine::open(const std::vector<Contribution>& contributions,
                                      std::vector<WorkerId>& rejected) {
  const PartyTerms terms{
      .term = config_.term, .model = model_, .element_count = contribution_count()};
  return open_party(*store_, terms, contributions, rejected);
}

Result<MergeResult> MergerEngine::merge(const MergeJob& job) {
  SPEEDO_ASSERT(stage_ == job.stage);
  if (superseded_) return *superseded_;
  expected_.reset();
  if (!last_made_) {
    SPEEDO_TRY(settle());
    SPEEDO_TRY(erase_earlier_checkpoint());
    std::optional<Merger::Copy> before;
    if (replica_ && job.is_last) before = copy();
    auto result = makes_steps_in_parts() ? merge_in_parts(job) : merge_party(job);
    ahead_.reset();
    SPEEDO_TRY(note(result ? Result<void>() : Result<void>(result.error())));
    result->check = check_;
    if (!before) return result;
    last_made_ = {.result = std::move(*result), .before = std::move(*before)};
  }
  // Of a replica the last merge is told when the weights are in the store: it is made once, however
  // often that is tried.
  finish_publication();
  SPEEDO_TRY(note(publish_now()));
  return std::exchange(last_made_, std::nullopt)->result;
}

Result<MergeResult> MergerEngine::merge_party(const MergeJob& job) {
  MergeResult result{.version = version_};
  std::vector<Contribution> contributions = job.contributions;
  std::vector<double> norms;
  has_changed_ = false;
  seen_.clear();
  if (looks_at_norms()) {
    SPEEDO_ASSIGN(contributions, admit(std::move(contributions), result, norms));
  }
  while (true) {
    SPEEDO_ASSIGN(const MergeParty party, open(contributions, result.rejected));
    if (party.contributions.empty() || is_refused(job, result)) break;
    const bool is_where_it_must_be = !publication_ || !job.is_last || is_published_with_merge_;
    begun_ahead_ = is_where_it_must_be && ahead_ && ahead_->fits(job, party.readers);
    result.begun_ahead = begun_ahead_;
    SPEEDO_ASSIGN(const Fault fault, try_merge(party, job, begun_ahead_));
    if (!fault) {
      advance(job);
      break;
    }
    contributions = leave_out(*fault, party.contributions, result);
    if (is_refused(job, result)) break;
  }
  // A store that lost a contribution may have lost the weights, too.
  if (!result.rejected.empty()) SPEEDO_TRY(restore_lost_weights());
  if (is_put_off(job, result)) {
    name_lost_alone(result);
  } else {
    for (const double norm : norms) norm_filter_.keep(norm);
  }
  result.version = version_;
  return result;
}

// What is left without the one at fault in the pass before.
std::vector<MergeJob::Contribution> MergerEngine::leave_out(
    std::size_t fault, std::vector<Contribution> contributions, MergeResult& result) const {
  const std::optional<std::uint64_t> place = has_changed_ ? std::nullopt : pass_.fault_place();
  reject(contributions[fault].worker,
         place ? std::optional(name_of_place(*place)) : std::nullopt, result);
  contributions.erase(contributions.begin() + static_cast<std::ptrdiff_t>(fault));
  return contributions;
}

// Of a record: the weights, and behind them histories.
std::string MergerEngine::name_of_place(std::uint64_t element) const {
  if (replica_) return "a gradient or a factor";
  const auto place = static_cast<std::int64_t>(element % std::max<std::size_t>(weight_count_, 1));
  for (const ParameterSlot& slot : layout_.slots()) {
    if (place >= slot.offset + slot.count()) continue;
    return fmt::format("layer '{}' (parameter {})", slot.layer, slot.index);
  }
  return "its padding";
}

void MergerEngine::advance(const MergeJob& job) {
  if (replica_) {
    replica_->merged();
  } else {
    record_.advance();
  }
  version_.value += 1;
  state_ = job.state;
  count_merge(job);
}

bool MergerEngine::comes_through_store(std::span<const Contribution> contributions) const {
  return std::ranges::any_of(contributions, [this](const Contribution& each) {
    return !config_.shared->reads_in_place(contribution_key(config_.term, each.worker.value));
  });
}

void MergerEngine::count_merge(const MergeJob& job) {
  checkpoint_.count_merge();
  if (!publication_) return;
  if (replica_) {
    publication_->count_merge(false);
    if (job.has_newcomers) publication_->make_due();
    return;
  }
  publication_->count_merge(comes_through_store(job.contributions));
  if (is_published_with_merge_) publication_->published(version_.value);
}

std::unique_ptr<ChunkMerge> MergerEngine::make_chunk_merge(
    const MergeJob& job, std::span<const Contribution> contributions) {
  if (replica_) {
    is_published_with_merge_ = false;
    return replica_->begin(job, contributions.size(), *store_, next_step());
  }
  if (publication_) {
    is_published_with_merge_ = job.is_last || record_.memory() == nullptr ||
                               publication_->is_with_each_merge() ||
                               comes_through_store(job.contributions);
    if (is_published_with_merge_) finish_publication();
    config_.shared->set_copies(is_published_with_merge_);
  }
  RecordInfo info = info_of(Version{version_.value + 1}, {});
  info.term = config_.term;
  const ChunkMerge::Frame frame{.spec = spec(),
                                .job = job,
                                .contributions = contributions,
                                .layout = layout_,
                                .record = record_.values(),
                                .next = record_.next(info.version),
                                .store = *store_,
                                .info = std::move(info)};
  switch (spec().kind) {
    case UpdateKind::kGradientOnly:
      return merge_gradients(frame, *rule_);
    case UpdateKind::kElasticMaster:
      return merge_locals(frame, locals_);
    case UpdateKind::kFullDelta:
    case UpdateKind::kElastic:
      break;
  }
  return merge_deltas(frame);
}

// `goes_on`: with what was merged ahead, which fits.
// On any outcome but "no fault" weights, histories and the published record are as before.
Result<MergerEngine::Fault> MergerEngine::try_merge(const MergeParty& party, const MergeJob& job,
                                                    bool goes_on) {
  std::unique_ptr<MergeAhead> ahead = std::move(ahead_);
  if (!goes_on) ahead.reset();
  has_changed_ = false;
  std::unique_ptr<ChunkMerge> merge;
  if (!goes_on) {
    merge = make_chunk_merge(job, party.contributions);
    if (looks_at_norms()) merge = as_seen(std::move(merge), party.contributions);
  }
  const MergeCourse course =
      goes_on ? course_of(*ahead) : whole_course(std::move(merge), contribution_count());
  return end_course(course, party, contribution_count(), pass_, job.state);
}

void MergerEngine::expect(const MergeJob& job) {
  SPEEDO_ASSERT(stage_ == job.stage && !job.contributions.empty());
  ahead_.reset();
  expected_.reset();
  const bool is_short = contribution_count() * sizeof(float) < config_.ahead_bytes_min;
  if (superseded_ || is_short || looks_at_norms()) return;
  if (makes_steps_in_parts()) return expect_in_parts(job);
  expected_ = job;
}

// What goes wrong here goes wrong again, and is named, when the merge is ordered.
bool MergerEngine::merge_ahead() {
  if (makes_steps_in_parts()) return config_.step_parts->take_ahead();
  if (!expected_) return false;
  if (!settle()) {
    forget_expected();
    return false;
  }
  if (!ahead_) {
    ahead_ = std::make_unique<MergeAhead>(
        *store_, make_chunk_merge(*expected_, expected_->contributions), *expected_, config_.term,
        contribution_count());
  }
  const auto advanced = ahead_->advance(pass_);
  if (!advanced) forget_expected();
  return advanced && *advanced;
}

void MergerEngine::forget_expected() {
  ahead_.reset();
  expected_.reset();
  if (config_.step_parts) config_.step_parts->forget();
}

}  // namespace speedo
