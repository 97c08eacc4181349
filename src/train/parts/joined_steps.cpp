#include "train/parts/joined_steps.hpp"

#include <span>
#include <utility>
#include <vector>

#include "store/is_lost.hpp"
#include "train/merge/merger_party.hpp"
#include "train/trainer/trainer_chunks.hpp"

namespace speedo {
namespace {

// A server may lose its part of a step before it is read; then so it has the contributions.
constexpr int kStepAttempts = 5;

}  // namespace

JoinedSteps::JoinedSteps(PartSetup setup, std::shared_ptr<PartDesk> desk)
    : store_(setup.store),
      clock_(setup.config.platform->clock()),
      seats_(std::move(setup), std::move(desk)) {}

StepHeader JoinedSteps::header_of(const MergeJob& job) const {
  return {.iteration = job.iteration,
          .rate_scale = job.lr_scale,
          .contributions = job.contributions.size(),
          .parts = parts()};
}

void JoinedSteps::expect(const MergeJob& job, RecordInfo info, const Room& room) {
  forget();
  if (stage_ != job.stage) return;
  seats_.tell_all(part_order::Expect{.base = Version{info.base_version}, .job = job});
  expected_ = header_of(job);
  const StepRoom given = room(expected_);
  const AheadRecord next{
      .version = info.version, .term = info.term, .element_count = given.values.size()};
  coming_ = std::make_unique<ComingRecord>(store_->read_ahead(step_key(info.term), next), next,
                                           given.values, clock_.now());
  for (const std::size_t chunk : given.layout.chunks_with_values()) coming_->allow(chunk);
}

bool JoinedSteps::take_ahead() {
  if (!coming_) return false;
  const std::size_t before = coming_->come();
  coming_->advance(clock_.now());
  return coming_->come() > before;
}

// Mergers of steps have nothing to begin with: they answer at once.
Result<void> JoinedSteps::open_closed(std::uint32_t stage) {
  if (stage_ != stage) seats_.close_all();
  stage_ = stage;
  while (true) {
    const std::vector<std::size_t> closed = seats_.closed_parts();
    if (closed.empty()) return {};
    const PartRound round = seats_.open(
        closed, part_order::Open{
                    .id = seats_.next_id(), .from = {}, .version = {}, .stage = stage,
                    .first_slot = 0});
    if (round.error) return *round.error;
  }
}

Result<MergeResult> JoinedSteps::merge(const MergeJob& job, RecordInfo info, const Room& room) {
  MergeResult result{.version = Version{info.base_version}};
  part_order::Merge order{.id = 0, .base = result.version, .job = job};
  order.job.state.clear();
  order.job.waits_for_lost = false;  // A part merges all or none.
  int misses = 0;
  while (!order.job.contributions.empty()) {
    SPEEDO_TRY(open_closed(job.stage));
    const StepHeader header = header_of(order.job);
    if (header != expected_) forget();
    const StepRoom given = room(header);
    order.id = seats_.next_id();
    const PartRound round = seats_.ask_all(order, given.values.size());
    if (round.is_done()) {
      const auto done = put(info, header, round, given);
      if (!done && is_lost(done.error()) && ++misses < kStepAttempts) continue;
      SPEEDO_TRY(done);
      result.version = Version{info.version};
      result.begun_ahead = round.begun_ahead;
      return result;
    }
    if (round.lost) continue;
    if (round.error) return *round.error;
    leave_out_rejected(round, order.job, result);
    if (is_put_off(job, result)) break;
  }
  if (is_put_off(job, result)) name_lost_alone(result);
  return result;
}

// Makes it visible, and reads it.
Result<void> JoinedSteps::put(RecordInfo info, const StepHeader& header, const PartRound& round,
                              const StepRoom& room) {
  const std::string key = step_key(info.term);
  info.element_count = room.values.size();
  info.state = encode(header);
  SPEEDO_TRY(store_->put_parts(key, info, round.written));
  SPEEDO_ASSIGN(auto reader, store_->read(key));
  const RecordInfo& there = reader->info();
  const bool is_it = there.version == info.version && there.term == info.term &&
                     there.model == info.model && there.element_count == info.element_count &&
                     there.state == info.state;
  if (!is_it) {
    return Error{ErrorCode::kNotFound, "the step in the store is another one"};
  }
  const bool is_coming = coming_ && coming_->record().version == info.version;
  if (!is_coming) forget();
  IncomingChunks incoming(std::move(reader), room.values, {}, std::exchange(coming_, nullptr));
  const std::span<const std::size_t> wanted = room.layout.chunks_with_values();
  for (const std::size_t chunk : wanted) incoming.request(chunk);
  for (const std::size_t chunk : wanted) SPEEDO_TRY(incoming.take(chunk));
  return {};
}

}  // namespace speedo
