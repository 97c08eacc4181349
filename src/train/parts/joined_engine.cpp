#include "train/parts/joined_engine.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/train/schedule.hpp>

#include "base/log.hpp"
#include "store/chunk_range.hpp"
#include "store/is_lost.hpp"
#include "train/job/job_solver.hpp"
#include "train/merge/merger_party.hpp"
#include "train/parts/clipped_store.hpp"

namespace speedo {
namespace {

// How soon an idle merger looks who came and who went.
constexpr std::chrono::seconds kSeatLook{1};
constexpr int kOpenAttempts = 3;
constexpr int kCopyAttempts = 5;

// The store has lost a part's copy before it was read, or has that of an order before.
bool is_missing(const Error& copy) {
  return is_lost(copy) || copy.code == ErrorCode::kMismatch;
}

}  // namespace

Result<void> check_parts(const std::vector<UpdateSpec>& stages,
                         const caffe::SolverParameter& solver) {
  for (const UpdateSpec& stage : stages) {
    if (averages_histories(stage)) {
      return Error{ErrorCode::kUsage,
                   "mergers beside the shards do not average updaters: leave --shards out, or "
                   "choose --save-updater keep and another strategy than averaging"};
    }
    if (stage.replicated) continue;
    if (any_replicated(stages)) {
      return Error{ErrorCode::kUsage,
                   "mergers beside the shards make steps of replicated updates or weights, not now "
                   "one and now the other: make all stages --replicated, or leave --shards out"};
    }
    if (stage.kind == UpdateKind::kElasticMaster) {
      return Error{ErrorCode::kUsage,
                   "mergers beside the shards do not form elastic steps: leave out "
                   "--elastic-side master or --shards"};
    }
    if (stage.kind == UpdateKind::kGradientOnly && solver.clip_gradients() > 0.0F) {
      return Error{ErrorCode::kUsage,
                   "clip_gradients takes the norm of the whole gradient, which no shard has: leave "
                   "it or --shards out"};
    }
  }
  return {};
}

Result<std::unique_ptr<JoinedEngine>> JoinedEngine::create(PartSetup setup, Checkpoint start,
                                                           std::shared_ptr<PartDesk> desk) {
  SPEEDO_TRY(check_parts(setup.config.stages, setup.solver));
  if (!wants_histories(setup.config.stages)) start.histories.clear();
  auto engine = std::unique_ptr<JoinedEngine>(new JoinedEngine(
      std::move(setup), std::move(start), std::move(desk)));
  return engine;
}

JoinedEngine::JoinedEngine(PartSetup setup, Checkpoint start, std::shared_ptr<PartDesk> desk)
    : setup_(std::move(setup)),
      store_(setup_.store),
      seats_(setup_, std::move(desk)),
      start_(std::move(start)),
      version_(start_->version),
      state_(start_->session) {
  SPEEDO_ASSERT(start_->weights.size() ==
                static_cast<std::size_t>(setup_.layout.element_count()));
}

RecordInfo JoinedEngine::info_of(Version version, const std::string& state) const {
  RecordInfo info;
  info.model = setup_.layout.digest();
  info.version = version.value;
  info.base_version = version_.value;
  info.element_count = static_cast<std::uint64_t>(setup_.layout.element_count());
  info.term = setup_.config.term;
  info.state = state;
  return info;
}

Result<void> JoinedEngine::put_histories(const std::vector<std::vector<float>>& histories) {
  if (histories.empty()) return {};
  const std::uint32_t first_slot = seats_.take_slots();
  for (std::size_t part = 0; part < seats_.count(); ++part) {
    const PartClip clip{part, store_->parts()};
    // The weights' place: a checkpoint has them first, and nobody reads these.
    std::vector<float> values(clipped_count(info_of(version_, {}).element_count, clip));
    for (const auto& history : histories) {
      const std::vector<float> clipped = clip_values(history, clip);
      values.insert(values.end(), clipped.begin(), clipped.end());
    }
    RecordInfo info = info_of(version_, {});
    info.model = clip_layout(setup_.layout, clip).digest();
    info.element_count = values.size();
    const PartCheckpointPlace place{clip, setup_.keeps_copies(), first_slot};
    const auto writer = write_part_checkpoint(*store_, place, info);
    write_all(*writer, values);
    SPEEDO_TRY(writer->finish());
  }
  return {};
}

// The weights as a whole, for the parts' mergers to read theirs.
Result<void> JoinedEngine::put_start(const std::string& state) {
  SPEEDO_TRY(put_histories(start_->histories));
  const RecordInfo info = info_of(version_, state);
  // From here on all servers know of this master.
  const auto whole = store_->write(weights_key(), info);
  if (setup_.keeps_copies()) {
    SPEEDO_TRY(put_copies_of_whole(store_, info, start_->weights));
  }
  write_all(*whole, start_->weights);
  auto done = whole->finish();
  if (!done && done.error().code == ErrorCode::kSuperseded) {
    const auto newest = store_->read(weights_key());
    if (newest && (*newest)->info().term != info.term) erase_start();
  }
  return done;
}

// Of the whole, which no manifest names any more.
void JoinedEngine::erase_start() {
  for (std::size_t part = 0; part < seats_.count(); ++part) {
    erase_with_copies(*store_, info_of(version_, {}).element_count, part, 0);
  }
}

std::vector<WrittenPart> JoinedEngine::of_all_servers(std::vector<WrittenPart> written) const {
  written.resize(store_->parts());  // servers that a short record has nothing on
  return written;
}

// Once the store or a part says that another master has the job, nothing is written any more.
Result<void> JoinedEngine::note(Result<void> done) {
  if (!done && done.error().code == ErrorCode::kSuperseded) superseded_ = done.error();
  return done;
}

Result<void> JoinedEngine::put_manifest(Version version, const std::string& state,
                                        const std::vector<WrittenPart>& written) {
  auto put = note(
      store_->put_parts(weights_key(), info_of(version, state), of_all_servers(written)));
  in_doubt_ = !put;
  return put;
}

// As `version`, which is the next or this one. False: a merger is gone, and they are still closed.
Result<bool> JoinedEngine::open(std::span<const std::size_t> parts, Version version,
                                const std::string& state) {
  const part_order::Open order{.id = seats_.next_id(),
                               .from = version_,
                               .version = version,
                               .stage = *stage_,
                               .first_slot = 0};
  PartRound round = seats_.open(parts, order);
  std::vector<WrittenPart> written = written_;
  written.resize(seats_.count());
  for (const std::size_t part : parts) written[part] = round.written[part];
  Result<void> put;
  if (round.is_done()) {
    put = put_manifest(version, state, written);
  } else if (round.error) {
    put = note(*round.error);
  }
  const bool is_open = round.is_done() && put;
  seats_.decide(order.id, is_open);
  if (!is_open) {
    seats_.close(parts);
    if (round.is_done() && version == version_) tried_ = std::move(written);
    SPEEDO_TRY(put);
    SPEEDO_ASSERT(round.lost);
    return false;
  }
  if (version == version_) {
    for (const std::size_t part : parts) earlier_slots_[part].push_back(written_[part].slot);
    written_ = std::move(written);
  } else {
    become(version, state, std::move(written));
  }
  seats_.settle(parts, *store_);
  return true;
}

void JoinedEngine::become(Version version, const std::string& state,
                          std::vector<WrittenPart> written) {
  version_ = version;
  state_ = state;
  written_ = std::move(written);
  earlier_slots_.assign(seats_.count(), {});
}

// Calls `prepare` before each attempt: what is to be there then may be lost at any moment.
Result<void> JoinedEngine::open_closed(Version version, const std::string& state,
                                       const std::function<Result<void>()>& prepare) {
  int misses = 0;
  while (true) {
    const std::vector<std::size_t> closed = seats_.closed_parts();
    if (closed.empty()) return {};
    SPEEDO_TRY(prepare());
    const auto opened = open(closed, version, state);
    if (opened && *opened) return {};
    if (opened) continue;
    if (opened.error().code != ErrorCode::kNotFound) return opened.error();
    if (++misses < kOpenAttempts) continue;
    return lost_part(opened.error().message);
  }
}

// Another master may have put its weights in the place of these; else the store may have the
// version before, or the next one, whose manifest came and whose answer did not.
Error JoinedEngine::lost_part(const std::string& what) {
  const auto asked = note(store_->erase_blob(probe_key()));
  if (!asked && asked.error().code == ErrorCode::kSuperseded) return asked.error();
  std::vector<float> values(static_cast<std::size_t>(setup_.layout.element_count()));
  const auto other = read_all_parts(store_, setup_.layout, values);
  const std::string remedy =
      other ? fmt::format("the store has version {}, which a master that is started again with "
                          "--resume=auto goes on with",
                          other->version)
            : std::string("go on from files with --resume=FILE");
  return {ErrorCode::kCorrupt,
          fmt::format("a part of the weights of version {} is lost, neither its server nor the "
                      "next one has it any more ({}): {}",
                      version_.value, what, remedy)};
}

Result<void> JoinedEngine::open_closed() {
  return open_closed(version_, state_, [this] { return restore_manifest(); });
}

// Parts that were opened anew have written this version once more, to slots that nobody writes to
// again. Where it is there it counts, whether their manifest arrived or not: what they had opened
// may be gone with the server and with the copy on the next one.
Result<void> JoinedEngine::take_tried_parts() {
  for (std::size_t part = 0; part < tried_.size(); ++part) {
    if (tried_[part] == written_[part]) continue;
    SPEEDO_ASSIGN(const bool is_better, is_better_kept(part, tried_[part]));
    if (is_better) std::swap(written_[part], tried_[part]);
    earlier_slots_[part].push_back(tried_[part].slot);
  }
  tried_.clear();
  return {};
}

// Its server may have lost it, and what counted before, and the next one the copy of that alone.
Result<bool> JoinedEngine::is_better_kept(std::size_t part, const WrittenPart& tried) {
  const RecordInfo info = info_of(version_, {});
  SPEEDO_ASSIGN(const bool is_there, store_->has_part(weights_key(), info, part, tried));
  if (is_there || !setup_.keeps_copies()) return is_there;
  SPEEDO_ASSIGN(const bool was_there,
                store_->has_part(weights_key(), info, part, written_[part]));
  if (was_there) return false;
  return store_->has_part(part_copy_key(part, store_->parts(), weights_key()), info, part, tried);
}

// Where a part lies that no merger has, on its server or, as a copy, on the next one. What its
// earlier mergers have left of this version is back with a server that has gone back.
Result<bool> JoinedEngine::find_again(std::size_t part) {
  const RecordInfo info = info_of(version_, {});
  const std::string copy = part_copy_key(part, store_->parts(), weights_key());
  const auto is_at = [&](const std::string& key, std::uint32_t slot) {
    return store_->has_part(key, info, part, {slot, written_[part].checksums});
  };
  std::vector<std::uint32_t> slots{written_[part].slot};
  slots.insert(slots.end(), earlier_slots_[part].rbegin(), earlier_slots_[part].rend());
  for (const std::uint32_t slot : slots) {
    SPEEDO_ASSIGN(bool found, is_at(weights_key(), slot));
    if (!found && setup_.keeps_copies()) {
      SPEEDO_ASSIGN(found, is_at(copy, slot));
    }
    if (!found) continue;
    written_[part].slot = slot;
    return true;
  }
  // Copies of a version that was put as a whole.
  return setup_.keeps_copies() ? is_at(copy, 0) : false;
}

// It may be lost with the server that it lies on, which may be back with one whose parts are where
// they lay before they were opened again. Or the next one is there, whose answer was lost. Without
// a part that no merger has nor any server it would only take the place of a version that is whole.
Result<void> JoinedEngine::restore_manifest() {
  SPEEDO_TRY(take_tried_parts());
  const auto has_it = store_->has_put_parts(weights_key(), info_of(version_, {}),
                                            of_all_servers(written_));
  if (has_it && *has_it) {
    in_doubt_ = false;
    return {};
  }
  if (!has_it && is_transient(has_it.error().code)) return has_it.error();
  for (const std::size_t part : seats_.closed_as_known()) {
    SPEEDO_ASSIGN(const bool found, find_again(part));
    if (!found) return lost_part(fmt::format("part {} of {}", part + 1, store_->parts()));
  }
  SPEEDO_WARN("the store does not have the manifest of version {}: publishing it again",
              version_.value);
  return put_manifest(version_, state_, written_);
}

Result<Version> JoinedEngine::enter_stage(std::uint32_t stage, const std::string& state) {
  SPEEDO_ASSERT(stage < setup_.config.stages.size());
  if (superseded_) return *superseded_;
  // An attempt may have opened the first stage and not have come further.
  if (!is_start_open_) SPEEDO_TRY(open_stage(stage, state));
  SPEEDO_ASSERT(stage_ == stage);
  if (start_) {
    is_start_open_ = true;
    // Of a master that merged alone: a resume would go back to it.
    SPEEDO_TRY(note(store_->erase(checkpoint_key())));
    is_start_open_ = false;
    start_.reset();
    erase_start();
  }
  return version_;
}

Result<void> JoinedEngine::open_stage(std::uint32_t stage, const std::string& state) {
  std::vector<std::vector<float>> histories;
  if (!start_) {
    SPEEDO_ASSIGN(Merger::Copy copy, take_copy());
    histories = std::move(copy.histories);
  }
  const auto before = std::exchange(stage_, stage);
  seats_.close_all();
  const auto opened = open_closed(Version{version_.value + 1}, state, [&]() -> Result<void> {
    if (start_) return put_start(state);
    SPEEDO_TRY(put_histories(histories));
    return restore_manifest();
  });
  if (!opened) stage_ = before;
  return opened;
}

Result<MergeResult> JoinedEngine::merge(const MergeJob& job) {
  SPEEDO_ASSERT(stage_ == job.stage);
  if (superseded_) return *superseded_;
  MergeResult result{.version = version_};
  part_order::Merge order{.id = 0, .base = version_, .job = job};
  order.job.state.clear();
  order.job.waits_for_lost = false;  // A part merges all or none.
  while (!order.job.contributions.empty()) {
    // Parts write the next version where a manifest that does not count may have it.
    if (in_doubt_) {
      seats_.look();
      SPEEDO_TRY(restore_manifest());
    }
    SPEEDO_TRY(open_closed());
    order.id = seats_.next_id();
    const PartRound round = seats_.ask_all(order);
    if (round.is_done()) {
      const Version next{version_.value + 1};
      auto put = put_manifest(next, job.state, round.written);
      seats_.decide(order.id, put.has_value());
      SPEEDO_TRY(put);
      become(next, job.state, round.written);
      result.begun_ahead = round.begun_ahead;
      break;
    }
    seats_.decide(order.id, false);
    if (round.lost) continue;
    if (round.error) SPEEDO_TRY(note(*round.error));
    leave_out_rejected(round, order.job, result);
    if (is_put_off(job, result)) break;
  }
  // A store that lost them may have the manifest of a version before, or one of this version that
  // was taken back: workers are told to read these weights now.
  const bool is_over = order.job.contributions.empty() || is_put_off(job, result);
  if (is_over) SPEEDO_TRY(restore_manifest());
  if (is_put_off(job, result)) name_lost_alone(result);
  result.version = version_;
  return result;
}

void JoinedEngine::expect(const MergeJob& job) {
  if (!superseded_ && !in_doubt_) seats_.tell_all(part_order::Expect{.base = version_, .job = job});
}

Instant JoinedEngine::publish_behind() { return kSeatLook; }

Result<Merger::Copy> JoinedEngine::take_copy() {
  if (start_) {
    return Merger::Copy{version_, start_->weights, start_->histories, state_};
  }
  int misses = 0;
  while (true) {
    SPEEDO_TRY(open_closed());
    const PartRound round = seats_.ask_all(part_order::Copy{seats_.next_id()});
    if (round.lost) continue;
    if (round.error && is_missing(*round.error) && ++misses < kCopyAttempts) continue;
    if (round.error) SPEEDO_TRY(note(*round.error));
    return joined(round.copied);
  }
}

// A part whose checkpoint was lost has no histories where the stage does not use them: its begin at
// zero.
Merger::Copy JoinedEngine::joined(std::span<const part_answer::Copied> parts) const {
  const auto count = static_cast<std::size_t>(setup_.layout.element_count());
  Merger::Copy copy{version_, std::vector<float>(count), {}, state_};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const PartClip clip{part, store_->parts()};
    const auto& histories = parts[part].histories;
    put_back(parts[part].weights, clip, copy.weights);
    if (copy.histories.size() < histories.size()) {
      copy.histories.resize(histories.size(), std::vector<float>(count));
    }
    for (std::size_t i = 0; i < histories.size(); ++i) {
      put_back(histories[i], clip, copy.histories[i]);
    }
  }
  return copy;
}

// Each part looks after its own chunks. That another master has the job is said here, and that a
// server is away: one alone may know of it, and no merge would follow where workers lack the
// weights.
Result<void> JoinedEngine::restore_lost_weights() {
  if (superseded_) return *superseded_;
  if (start_) return {};
  seats_.look();
  // What else it meets the next merge says, if it cannot either.
  auto restored = restore_manifest();
  if (superseded_) return *superseded_;
  auto opened = open_closed();
  if (superseded_) return *superseded_;
  if (!opened && opened.error().code == ErrorCode::kCorrupt) return opened;
  for (const auto& each : {opened, restored}) {
    if (!each && is_transient(each.error().code)) return each;
  }
  return {};
}

Result<std::unique_ptr<Merger>> make_joined_merger(const PartSetup& setup, Checkpoint start,
                                                   std::shared_ptr<PartDesk> desk) {
  return make_merger_thread(
      *setup.config.platform, [&]() -> Result<std::unique_ptr<MergerWork>> {
        SPEEDO_ASSIGN(auto engine, JoinedEngine::create(setup, std::move(start), std::move(desk)));
        return std::unique_ptr<MergerWork>(std::move(engine));
      });
}

}  // namespace speedo
