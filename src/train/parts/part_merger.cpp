#include "train/parts/part_merger.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>
#include <speedo/store/layout.hpp>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "store/is_lost.hpp"
#include "store/read_once.hpp"
#include "train/merge/merger_checkpoint.hpp"
#include "train/merge/merger_looks.hpp"

namespace speedo {
namespace {

constexpr std::chrono::milliseconds kReadAgainPause{5};

}  // namespace

PartMerger::PartMerger(PartSetup setup, PartSink sink)
    : setup_(std::move(setup)),
      sink_(std::move(sink)),
      platform_(*setup_.config.platform),
      monitor_(platform_.make_monitor()),
      thread_(platform_, "part merger", [this] { return idle(); }) {}

PartMerger::~PartMerger() {
  {
    const std::lock_guard lock(*monitor_);
    ending_ = true;
    monitor_->notify_all();
  }
  thread_.end();
  // What the engine made on the thread ends there.
  thread_.post([this] {
    if (engine_) engine_->close();
    engine_.reset();
    steps_.reset();
    if (store_) remove_what_nobody_names();
    store_.reset();
  });
}

// A newer master removes what it replaces when it begins. What was written here after that, of
// orders that came late, goes now. Without one, readers or the next master may be reading it.
void PartMerger::remove_what_nobody_names() {
  const auto newest = setup_.store->read(weights_key());
  if (!newest || (*newest)->info().term <= setup_.config.term) return;
  erase_with_copies(*setup_.store, static_cast<std::uint64_t>(setup_.layout.element_count()),
                    setup_.clip.part, first_slot_);
}

void PartMerger::take(PartOrder order) {
  if (const auto* const decision = std::get_if<part_order::Decide>(&order)) {
    return decide(*decision);
  }
  thread_.post([this, order = std::move(order)] {
    if (is_ending()) return;
    std::visit([this](const auto& each) { do_order(each); }, order);
  });
}

void PartMerger::decide(const part_order::Decide& decision) {
  const std::lock_guard lock(*monitor_);
  decided_.emplace(decision.id, decision.commit);
  monitor_->notify_all();
}

// A later order's decision may be here first, or come before this one's was seen.
Result<void> PartMerger::wait_for_decision(std::uint64_t id) {
  const std::lock_guard lock(*monitor_);
  decided_.erase(decided_.begin(), decided_.lower_bound(id));
  while (decided_.empty() && !ending_) monitor_->wait();
  const auto found = decided_.find(id);
  undecided_ = found == decided_.end();
  if (!undecided_ && found->second) return {};
  return Error{ErrorCode::kUnavailable, "what the part's merger has written does not count"};
}

bool PartMerger::is_ending() {
  const std::lock_guard lock(*monitor_);
  return ending_;
}

void PartMerger::await_vote(std::uint64_t id) {
  answered_ = false;
  store_->set_vote([this, id](const WrittenPart& written) {
    answered_ = true;
    sink_(part_answer::Written{
        .id = id, .part = written, .begun_ahead = engine_->begun_ahead()});
    return wait_for_decision(id);
  });
}

void PartMerger::end_vote(std::uint64_t id, const Result<void>& done) {
  if (store_) store_->set_vote({});
  if (!done && !answered_) sink_(part_answer::Failed{id, done.error()});
}

void PartMerger::do_order(const part_order::Open& order) {
  engine_.reset();
  steps_.reset();
  answered_ = false;
  const std::vector<UpdateSpec>& stages = setup_.config.stages;
  if (order.stage < stages.size() && stages[order.stage].replicated) {
    steps_ = std::make_unique<StepPart>(setup_, stages[order.stage]);
    return sink_(part_answer::Written{.id = order.id, .part = {}, .begun_ahead = false});
  }
  const auto opened = open(order);
  end_vote(order.id, opened);
  if (opened) {
    version_ = order.version;
  } else {
    engine_.reset();
  }
}

Result<PartMerger::PartCheckpoint> PartMerger::read_checkpoint(const std::string& key) {
  SPEEDO_ASSIGN(const auto reader, setup_.store->read(key));
  std::vector<float> values(reader->info().element_count);
  auto got = get_once(*setup_.store, key, reader->info().model, values);
  if (!got && got.error().code == ErrorCode::kNotFound) {
    // Overwritten by a merger that is thought to be gone, or lost.
    platform_.sleep(kReadAgainPause);
    got = get_once(*setup_.store, key, reader->info().model, values);
  }
  SPEEDO_ASSIGN(const RecordInfo read, got);
  return PartCheckpoint{Version{read.version}, std::move(values)};
}

// Nothing: there is none, or none is needed.
Result<std::optional<PartMerger::PartCheckpoint>> PartMerger::newest_checkpoint() {
  if (!wants_histories(setup_.config.stages)) return std::optional<PartCheckpoint>();
  auto checkpoint = read_checkpoint(part_key(setup_.clip.part, checkpoint_key()));
  if (!checkpoint && is_lost(checkpoint.error()) && copies_) {
    checkpoint = read_checkpoint(
        part_copy_key(setup_.clip.part, setup_.clip.parts, checkpoint_key()));
  }
  if (checkpoint) return std::optional(*std::move(checkpoint));
  if (checkpoint.error().code != ErrorCode::kNotFound) return checkpoint.error();
  SPEEDO_INFO("part {}: no solver histories in the store: they begin at zero",
              setup_.clip.part + 1);
  return std::optional<PartCheckpoint>();
}

Result<std::vector<std::vector<float>>> PartMerger::histories_in(
    const PartCheckpoint& checkpoint) const {
  const std::vector<float>& values = checkpoint.values;
  const std::size_t part = clipped_count(
      static_cast<std::uint64_t>(setup_.layout.element_count()), setup_.clip);
  if (part == 0 || values.size() % part != 0 || values.empty()) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the checkpoint of part {} has {} floats, the part {}",
                             setup_.clip.part + 1, values.size(), part)};
  }
  std::vector<std::vector<float>> histories;
  for (std::size_t at = part; at < values.size(); at += part) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(at);
    histories.emplace_back(first, first + static_cast<std::ptrdiff_t>(part));
  }
  return histories;
}

Result<void> PartMerger::open(const part_order::Open& order) {
  const ParameterLayout clipped = clip_layout(setup_.layout, setup_.clip);
  const auto whole_count = static_cast<std::uint64_t>(setup_.layout.element_count());
  first_slot_ = order.first_slot;
  if (setup_.keeps_copies()) copies_ = std::make_unique<NeighborCopies>(setup_.store, setup_.clip);
  store_ = std::make_unique<ClippedStore>(
      setup_.store, setup_.clip,
      ClippedStore::Model{setup_.layout.digest(), clipped.digest(), whole_count},
      order.first_slot, copies_.get());
  Checkpoint start{.version = Version{order.version.value - 1},
                   .weights = std::vector<float>(clipped_count(whole_count, setup_.clip)),
                   .histories = {},
                   .session = {}};
  SPEEDO_ASSIGN(const RecordInfo read, read_part(*store_, setup_.keeps_copies(), setup_.clip.part,
                                                 clipped.digest(), start.weights));
  if (read.term > setup_.config.term) {
    return Error{ErrorCode::kSuperseded,
                 fmt::format("the weights in the store are those of a newer master, version {}",
                             read.version)};
  }
  if (read.version != order.from.value) {
    // A master that was stopped for a while puts its own back where the store has lost what says
    // that there is a newer one, and a server comes back without its last second: these weights
    // are lost by that.
    const bool is_by_another = read.term < setup_.config.term;
    const bool are_lost = is_by_another || read.version < order.from.value;
    return Error{are_lost ? ErrorCode::kNotFound : ErrorCode::kMismatch,
                 fmt::format("the store has version {} of the weights{}, not {}", read.version,
                             is_by_another ? ", of an earlier master" : "", order.from.value)};
  }
  // It may be older than the weights, as merges go on while it is written.
  SPEEDO_ASSIGN(const std::optional<PartCheckpoint> checkpoint, newest_checkpoint());
  const bool is_old = !checkpoint || checkpoint->version < order.from;
  if (checkpoint) {
    SPEEDO_ASSIGN(start.histories, histories_in(*checkpoint));
    if (is_old) {
      SPEEDO_WARN(
          "part {}: solver histories of version {} beside weights of version {}: training "
          "goes on, but not to the bits that it would have had (--deterministic)",
          setup_.clip.part + 1, checkpoint->version.value, order.from.value);
    }
  }
  MergerConfig config = setup_.config;
  config.is_part = true;
  config.shared = nullptr;
  // By the size of the job's model, whatever its parts'.
  config.publish_interval = checkpoint_interval(config.publish_interval, whole_count);
  config.ahead_bytes_min /= setup_.clip.parts;
  // Owned here, and outlives the engine.
  const std::shared_ptr<RecordStore> records(store_.get(), [](auto*) {});
  SPEEDO_ASSIGN(engine_, MergerEngine::create(config, clipped, setup_.solver, std::move(start),
                                              records, setup_.make_backend));
  await_vote(order.id);
  SPEEDO_TRY(engine_->enter_stage(order.stage, {}));
  // Or they would be still older for the next to open this part.
  if (is_old) engine_->want_checkpoint();
  return {};
}

void PartMerger::do_order(const part_order::Merge& order) {
  if (steps_) return sink_(steps_->merge(order));
  answered_ = undecided_ = false;
  end_vote(order.id, merge(order));
  // The master may be at the version that this one would write over: it opens the part anew.
  if (undecided_) engine_.reset();
  if (!engine_) return;
  engine_->write_checkpoint(thread_.has_work());
  looked_at_ = platform_.clock().now();
}

Result<void> PartMerger::merge(const part_order::Merge& order) {
  if (!engine_ || version_ != order.base) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("part {} is at version {}, not {}", setup_.clip.part + 1,
                             version_.value, order.base.value)};
  }
  const TraceSpan span("merge");
  await_vote(order.id);
  SPEEDO_ASSIGN(const MergeResult result, engine_->merge(order.job));
  if (!result.rejected.empty()) {
    sink_(part_answer::Rejected{order.id, result.rejected, result.not_finite});
  }
  version_ = result.version;
  return {};
}

void PartMerger::do_order(const part_order::Expect& order) {
  expected_at_ = platform_.clock().now();
  if (steps_) steps_->expect(order);
  if (!engine_) return;
  engine_->expect(order.job);
  engine_->write_checkpoint(thread_.has_work());
}

void PartMerger::do_order(const part_order::Copy& order) {
  if (!engine_) {
    const Error error{ErrorCode::kMismatch, "the part was not opened"};
    return sink_(part_answer::Failed{order.id, error});
  }
  Merger::Copy copy = engine_->copy();
  sink_(part_answer::Copied{.id = order.id,
                            .weights = std::move(copy.weights),
                            .histories = std::move(copy.histories)});
}

void PartMerger::do_order(const part_order::Close& /*order*/) {
  if (engine_) engine_->close();
  engine_.reset();
  steps_.reset();
}

Instant PartMerger::idle() {
  if (is_ending()) return kMergerLookInterval;
  if (steps_) {
    if (steps_->merge_ahead()) return Instant{0};
    return steps_->expects() ? ahead_pause(platform_.clock().now() - expected_at_)
                             : Instant{kMergerLookInterval};
  }
  if (!engine_) return kMergerLookInterval;
  if (engine_->merge_ahead()) return Instant{0};
  const Instant now = platform_.clock().now();
  if (now - looked_at_ >= kMergerLookInterval) {
    engine_->restore_lost_weights().ignore("a part's merger has its weights in memory");
    looked_at_ = platform_.clock().now();
  }
  return engine_->expects() ? ahead_pause(now - expected_at_) : Instant{kMergerLookInterval};
}

}  // namespace speedo
