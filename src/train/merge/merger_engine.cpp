// Stages, records and checkpoints of the master's weights. Whatever is written to the store is
// written before memory changes, so that a failure leaves the old version, whole.

#include "train/merge/merger_engine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "base/log.hpp"
#include "train/job/job_solver.hpp"

namespace speedo {
namespace {

// Nothing will be published behind the merges.
constexpr std::chrono::seconds kNoPublication{1};
constexpr std::chrono::milliseconds kPauseWhileLooking{5};

// Whether the store answers, and has neither this version whole nor a newer one of this master. Of
// a part it may have an older one, which a next master goes on from: nothing is written over what
// that names before the manifest of this version is there again.
bool is_lost(RecordStore& store, std::uint64_t version, const MergerConfig& config) {
  const std::uint64_t term = config.term;
  const auto reader = store.read(weights_key());
  if (!reader) return !is_transient(reader.error().code);
  // A newer master's: what this one had written is gone for good. An earlier one's are of whatever
  // version: the store has come back as it was before this one began.
  if (term != 0 && (*reader)->info().term > term) return false;
  if ((*reader)->info().term < term) return true;
  if ((*reader)->info().version < version) return !config.is_part;
  const auto whole = (*reader)->is_whole();
  return whole && !*whole;
}

}  // namespace

Result<std::unique_ptr<MergerEngine>> MergerEngine::create(
    const MergerConfig& config, const ParameterLayout& layout, const caffe::SolverParameter& solver,
    Checkpoint start, std::shared_ptr<RecordStore> store, const MakeBackend& make_backend) {
  auto engine = std::unique_ptr<MergerEngine>(new MergerEngine(
      config, layout, solver, std::move(start), std::move(store)));
  SPEEDO_TRY(engine->check_start(make_backend));
  return engine;
}

MergerEngine::MergerEngine(const MergerConfig& config, const ParameterLayout& layout,
                           const caffe::SolverParameter& solver, Checkpoint start,
                           std::shared_ptr<RecordStore> store)
    : config_(config),
      layout_(layout),
      solver_(solver),
      model_(layout.digest()),
      weight_count_(static_cast<std::size_t>(layout.element_count())),
      store_(std::move(store)),
      record_(std::move(start.weights)),
      kept_(std::move(start.histories)),
      version_(start.version),
      state_(std::move(start.session)),
      pass_(config.threads),
      norm_filter_(config.outlier_factor),
      checkpoint_(config.publish_interval, weight_count_,
                  config.shared ? config.platform : nullptr),
      replaced_(std::move(start.replaced)) {
  SPEEDO_ASSERT(store_ != nullptr && !config_.stages.empty());
  SPEEDO_ASSERT(!config_.shared || config_.shared == store_);
  if (config_.shared) {
    publication_.emplace(config_.platform->clock(), config_.platform);
    look_.emplace(*config_.platform);
  }
  SPEEDO_ASSERT(record_.size() == weight_count_);
  for (const UpdateSpec& stage : config_.stages) SPEEDO_ASSERT(stage.factor != 0.0F);
}

// Histories of a job that has no use for them are dropped.
Result<void> MergerEngine::check_start(const MakeBackend& make_backend) {
  if (!wants_histories(config_.stages)) {
    kept_.clear();
    return {};
  }
  std::size_t count = 0;
  for (const UpdateSpec& stage : config_.stages) {
    SPEEDO_ASSIGN(count, UpdateRule::history_count(solver_of(solver_, stage)));
    if (stage.kind != UpdateKind::kGradientOnly || backend_) continue;
    SPEEDO_ASSERT(make_backend != nullptr);
    SPEEDO_ASSIGN(backend_, make_backend());
  }
  const bool fit = std::all_of(kept_.begin(), kept_.end(), [this](const auto& history) {
    return history.size() == weight_count_;
  });
  if (!kept_.empty() && (!fit || kept_.size() != count)) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the checkpoint has {} solver histories, a {} solver of this net has "
                             "{} of {} elements; resume with the solver that wrote it",
                             kept_.size(), solver_.type(), count, weight_count_)};
  }
  return {};
}

RecordInfo MergerEngine::info_of(Version version, const std::string& state) const {
  RecordInfo info;
  info.model = model_;
  info.version = version.value;
  info.base_version = version_.value;
  info.element_count = record_.size();
  info.state = state;
  return info;
}

// Remembers failures of the store, and for good that the job is another master's.
Result<void> MergerEngine::note(Result<void> written) {
  store_failed_ = !written && written.error().code != ErrorCode::kNotFinite;
  if (!written && written.error().code == ErrorCode::kSuperseded) superseded_ = written.error();
  return written;
}

// A copy; empty if there are none.
MergerEngine::Histories MergerEngine::histories() {
  if (rule_) {
    Histories copies(rule_->history_count(), std::vector<float>(weight_count_));
    for (std::size_t i = 0; i < copies.size(); ++i) rule_->read_history(i, copies[i]);
    return copies;
  }
  if (!kept_.empty()) return kept_;
  Histories copies;
  for (std::size_t at = weight_count_; at < record_.size(); at += weight_count_) {
    const std::span<const float> history = record_.values().subspan(at, weight_count_);
    copies.emplace_back(history.begin(), history.end());
  }
  return copies;
}

// The checkpoint that was due with these weights is in the store.
Result<Merger::Copy> MergerEngine::take_copy() {
  SPEEDO_TRY(settle());
  finish_checkpoint();
  return copy();
}

Merger::Copy MergerEngine::copy() {
  if (last_made_) return last_made_->before;
  const std::span<const float> now = weights();
  return {version_, std::vector<float>(now.begin(), now.end()), histories(), state_};
}

Result<Version> MergerEngine::enter_stage(std::uint32_t stage, const std::string& state) {
  SPEEDO_ASSERT(stage < config_.stages.size());
  if (superseded_) return *superseded_;
  SPEEDO_TRY(settle());
  forget_expected();
  finish_checkpoint();
  finish_publication();
  norm_filter_.clear();
  const UpdateSpec& update = config_.stages[stage];
  const caffe::SolverParameter solver = solver_of(solver_, update);
  const std::span<const float> now = weights();
  Histories carried = histories();
  std::vector<float> record(now.begin(), now.end());
  std::unique_ptr<MergerRule> rule;
  if (update.kind == UpdateKind::kGradientOnly) {
    SPEEDO_ASSIGN(rule, MergerRule::create(solver, layout_, *backend_, now, carried));
    carried.resize(rule->history_count(), std::vector<float>(weight_count_));
  }
  if (averages_histories(update)) {
    SPEEDO_ASSIGN(const std::size_t count, UpdateRule::history_count(solver));
    carried.resize(count, std::vector<float>(weight_count_));
    for (const auto& history : carried) record.insert(record.end(), history.begin(), history.end());
    carried.clear();
  }

  const Version version{version_.value + 1};
  RecordInfo info = info_of(version, state);
  info.element_count = record.size();
  info.term = config_.term;
  std::unique_ptr<MergerReplica> replica = make_replica(update);
  if (!carried.empty() && !replica) {
    fill_checkpoint(carried);
    checkpoint_.write(*store_, info);
    SPEEDO_TRY(note(checkpoint_.finish()));
    has_earlier_checkpoint_ = false;
  } else if (!stage_) {
    has_earlier_checkpoint_ = true;
    // A part's at once: all of its servers are asked then whether the job is still this master's.
    if (config_.is_part) SPEEDO_TRY(erase_earlier_checkpoint());
  }
  SPEEDO_ASSIGN(MergerRecord entered, make_record(record, version));
  SPEEDO_TRY(note(replica ? publish_first_replica(carried, info) : publish_first(entered, info)));

  if (record_.memory()) record_.memory()->withdraw();
  stage_ = stage;
  record_ = std::move(entered);
  locals_ = {};
  kept_ = rule ? Histories() : std::move(carried);
  replica_ = std::move(replica);
  if (!replica_ && !config_.shared) publication_.reset();
  rule_ = std::move(rule);
  version_ = version;
  state_ = state;
  return version_;
}

// A resume would prefer it to this master's weights, which have no histories: it goes before the
// first merge. Until then a master that was started with other updates by mistake costs nothing.
Result<void> MergerEngine::erase_earlier_checkpoint() {
  for (; !replaced_.empty(); replaced_.pop_back()) {
    SPEEDO_TRY(note(store_->erase(replaced_.back())));
  }
  if (!has_earlier_checkpoint_) return {};
  SPEEDO_TRY(note(store_->erase(checkpoint_key())));
  has_earlier_checkpoint_ = false;
  return {};
}

// Memory that cannot be had is done without.
Result<MergerRecord> MergerEngine::make_record(std::span<const float> values,
                                               Version version) const {
  if (config_.shared) {
    auto shared = MergerRecord::share(values, model_, version.value);
    if (shared) return shared;
    SPEEDO_WARN("workers of this machine read the weights from the store: {}",
                shared.error().message);
  }
  return MergerRecord(std::vector<float>(values.begin(), values.end()));
}

// A stage's first weights are in the store for everybody. Another record's memory comes back if
// they cannot be.
Result<void> MergerEngine::publish_first(const MergerRecord& record, const RecordInfo& info) {
  if (!config_.shared) return put(*store_, weights_key(), info, record.values());
  config_.shared->write_in(weights_key(), record.memory());
  config_.shared->set_copies(true);
  auto done = put(*store_, weights_key(), info, record.values());
  if (done) {
    publication_->published(info.version);
  } else {
    config_.shared->write_in(weights_key(), record_.memory());
  }
  return done;
}

Instant MergerEngine::publish_behind() {
  if (!publication_ || !stage_ || superseded_) return kNoPublication;
  if (publication_->is_sent()) finish_publication();
  if (checkpoint_.is_sent()) finish_checkpoint();
  take_look();
  if (publication_->is_due(version_.value)) {
    // Who is to contribute through the store reads these weights first: a merge ahead that is being
    // written there would wait for it for ever.
    if (ahead_ && is_published_with_merge_) forget_expected();
    begin_publication();
  }
  const bool looks = look_ && look_->errand.is_under_way();
  return looks ? Instant(kPauseWhileLooking) : publication_->next_look();
}

void MergerEngine::begin_publication() {
  if (!settle()) return;  // The next merge says why.
  const std::span<const float> values = replica_ ? published_values() : record_.keep();
  RecordInfo info = info_of(version_, state_);
  info.term = config_.term;
  info.element_count = values.size();
  publication_->begin(past_shared_memory(), info, values);
  if (has_histories_apart() && config_.publish_interval == 0) {
    checkpoint_.make_due();
    write_checkpoint(true);
    if (checkpoint_.is_under_way()) publication_->begin_beside(checkpoint_.values().size_bytes());
  }
}

// Training goes on: the store has the publication before, and soon the next.
void MergerEngine::finish_publication() {
  if (!publication_ || !publication_->is_under_way()) return;
  auto done = note(publication_->finish());
  record_.release();
  if (done) {
    if (publication_notes_.end()) {
      SPEEDO_INFO("the store has the weights of version {}", publication_->version());
    }
  } else if (publication_notes_.is_due(config_.platform->clock().now())) {
    SPEEDO_WARN("the weights could not be written to the store, it is tried again: {}",
                done.error().message);
  }
}

void MergerEngine::fill_checkpoint(const Histories& histories) {
  checkpoint_.fill(weights(), histories.size(), [&](std::size_t i, std::span<float> target) {
    std::ranges::copy(histories[i], target.begin());
  });
}

// With the histories that the record of the weights lacks.
void MergerEngine::fill_checkpoint() {
  if (!rule_) {
    fill_checkpoint(kept_);
    return;
  }
  checkpoint_.fill(
      weights(), rule_->history_count(),
      [this](std::size_t i, std::span<float> target) { rule_->read_history(i, target); });
}

// Where nobody waits for a store that is away, one under way is finished when it is done.
void MergerEngine::write_checkpoint(bool may_go_on) {
  const bool is_behind = checkpoint_.is_behind();
  if (is_behind && checkpoint_.is_under_way() && !checkpoint_.is_sent()) return;
  put_checkpoint(may_go_on || is_behind);
}

// Not after a failure: a store that is gone would hold back the end with its retries.
void MergerEngine::put_checkpoint(bool may_go_on) {
  if (!settle() || superseded_ || store_failed_) return;
  finish_checkpoint();
  // Without an interval of its own it goes with the weights.
  const bool by_count =
      !publication_ || config_.publish_interval != 0 || is_published_with_merge_;
  if (has_histories_apart() && checkpoint_.is_due(by_count)) {
    fill_checkpoint();
    checkpoint_.write(past_shared_memory(), info_of(version_, state_));
  }
  if (!may_go_on) finish_checkpoint();
}

void MergerEngine::close() {
  forget_expected();
  finish_publication();
  const bool lacks = publication_ && stage_ && publication_->version() < version_.value;
  if (lacks && !superseded_ && !store_failed_) {
    const auto done = note(publish_now());
    if (!done) SPEEDO_WARN("the store lacks the last weights: {}", done.error().message);
  } else if (stage_ && !superseded_ && !store_failed_) {
    // A server may have been replaced by one that lacks what was written last.
    put_again_if_lost();
  }
  if (checkpoint_.has_merges()) checkpoint_.make_due();
  put_checkpoint(false);
}

// The weights as they are, whole. Requires: none is under way.
Result<void> MergerEngine::publish_now() {
  SPEEDO_TRY(settle());
  SPEEDO_TRY(put(past_shared_memory(), weights_key(), info_of(version_, state_),
                 published_values()));
  if (publication_) publication_->published(version_.value);
  return {};
}

// Training goes on without a checkpoint: there are the one before and, soon, the next.
void MergerEngine::finish_checkpoint() {
  if (!checkpoint_.is_under_way()) return;
  auto done = note(checkpoint_.finish());
  if (publication_) publication_->end_beside(done.has_value());
  if (done) {
    checkpoint_notes_.end();
  } else if (checkpoint_notes_.is_due(config_.platform->clock().now())) {
    SPEEDO_WARN("the checkpoint could not be written, it is tried again after the next merge: {}",
                done.error().message);
  }
}

Result<void> MergerEngine::restore_lost_weights() {
  if (!stage_ || superseded_ || (publication_ && publication_->is_under_way())) return {};
  // Of a step that has left weights that are not finite no worker can go on.
  SPEEDO_TRY(settle());
  // Whoever reads each version from the store waits for it.
  if (look_ && !is_published_with_merge_) {
    begin_look();
    return {};
  }
  put_again_if_lost();
  return {};
}

void MergerEngine::put_again_if_lost() {
  const std::uint64_t known = publication_ ? publication_->version() : version_.value;
  if (!is_lost(past_shared_memory(), known, config_)) return;
  forget_expected();
  SPEEDO_WARN("the store has lost the weights of version {}: publishing them again", known);
  const auto done = note(publish_now());
  if (!done) SPEEDO_WARN("{}", done.error().message);
  checkpoint_.make_due();
  write_checkpoint(false);
}

void MergerEngine::begin_look() {
  Look& look = *look_;
  if (look.errand.is_under_way()) return;
  look.version = publication_->version();
  look.errand.begin([&look, &store = past_shared_memory(), &config = config_] {
    look.is_lost = is_lost(store, look.version, config);
    return Result<void>();
  });
}

// What was published since then is there.
void MergerEngine::take_look() {
  if (!look_ || !look_->errand.is_done()) return;
  (void)look_->errand.finish();
  const bool is_newest = !publication_->is_under_way() && look_->version == publication_->version();
  if (!look_->is_lost || !is_newest) return;
  forget_expected();
  SPEEDO_WARN("the store has lost the weights of version {}: publishing them again",
              look_->version);
  publication_->lost();
  checkpoint_.make_due();
  if (config_.publish_interval != 0) write_checkpoint(true);
}

}  // namespace speedo
