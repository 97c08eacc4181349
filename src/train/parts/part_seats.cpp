#include "train/parts/part_seats.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/train/checkpoint.hpp>
#include <speedo/train/schedule.hpp>

#include "base/log.hpp"
#include "train/parts/part_copy.hpp"

namespace speedo {
namespace {

constexpr std::chrono::seconds kLongWait{10};  // for an answer, until it is told

// The merger of a part in this process.
class PartHere : public PartLink {
 public:
  explicit PartHere(PartSetup setup) : setup_(std::move(setup)) {}
  void answer_to(PartSink sink) override {
    merger_ = std::make_unique<PartMerger>(setup_, std::move(sink));
  }
  void tell(const PartOrder& order) override { merger_->take(order); }
  void dismiss(const std::string& /*reason*/) override {}

 private:
  const PartSetup setup_;
  std::unique_ptr<PartMerger> merger_;
};

// Which order an answer is to; none: to none.
std::optional<std::uint64_t> order_of(const PartAnswer& answer) {
  return std::visit(
      [](const auto& each) -> std::optional<std::uint64_t> {
        if constexpr (requires { each.id; }) {
          return each.id;
        } else {
          return std::nullopt;
        }
      },
      answer);
}

std::uint64_t id_of(const PartOrder& order) {
  return std::visit(
      [](const auto& each) -> std::uint64_t {
        if constexpr (requires { each.id; }) {
          return each.id;
        } else {
          return 0;
        }
      },
      order);
}

void add_new(const std::vector<WorkerId>& workers, std::vector<WorkerId>& all) {
  for (const WorkerId worker : workers) {
    if (std::ranges::find(all, worker) == all.end()) all.push_back(worker);
  }
}

}  // namespace

PartSeats::PartSeats(PartSetup setup, std::shared_ptr<PartDesk> desk)
    : setup_(std::move(setup)),
      desk_(std::move(desk)),
      makes_steps_(any_replicated(setup_.config.stages)),
      seats_(makes_steps_ ? setup_.store->parts()
                          : std::min(setup_.store->parts(), chunk_count(element_count()))) {}

PartSeats::~PartSeats() { tell_all(part_order::Close{}); }

PartSeats::Seat* PartSeats::seat_of(std::uint64_t link) {
  const auto found = std::ranges::find_if(
      seats_, [&](const Seat& each) { return each.link && each.number == link; });
  return found == seats_.end() ? nullptr : &*found;
}

void PartSeats::sit(std::size_t part, std::shared_ptr<PartLink> link, std::string name) {
  Seat& seat = seats_[part];
  seat.link = std::move(link);
  seat.name = std::move(name);
  seat.number = ++links_;
  seat.is_open = false;
  seat.link->answer_to([desk = desk_, number = seat.number](PartAnswer answer) {
    desk->put({number, std::move(answer)});
  });
}

void PartSeats::sit_here(std::size_t part) {
  PartSetup setup = setup_;
  setup.clip = {part, setup_.store->parts()};
  sit(part, std::make_shared<PartHere>(std::move(setup)), {});
}

void PartSeats::lose(Seat& seat, const std::string& reason) {
  SPEEDO_WARN("the merger of part {} ({}) is gone: {}; the part is merged here",
              &seat - seats_.data() + 1, seat.name, reason);
  seat.link = nullptr;
  seat.is_open = false;
}

// The newest offer counts: one who comes again has been lost without a word.
void PartSeats::take_offers() {
  for (PartDesk::Offer& offer : desk_->take_offers()) {
    if (offer.part >= seats_.size()) {
      SPEEDO_WARN("{} has nothing to merge: the weights are {} chunks, at least one for each part",
                  offer.name, seats_.size());
      continue;
    }
    Seat& seat = seats_[offer.part];
    SPEEDO_INFO("part {} of {} is merged by {}", offer.part + 1, seats_.size(), offer.name);
    if (seat.link && !seat.name.empty()) seat.link->dismiss(kPartTaken);
    // What was here ends before, with a checkpoint for its successor.
    seat.link = nullptr;
    sit(offer.part, std::move(offer.link), std::move(offer.name));
  }
}

void PartSeats::look() {
  while (auto answered = desk_->look()) {
    const auto* const lost = std::get_if<part_answer::Lost>(&answered->answer);
    Seat* const seat = seat_of(answered->link);
    if (lost != nullptr && seat != nullptr) lose(*seat, lost->reason);
  }
  take_offers();
}

std::vector<std::size_t> PartSeats::closed_parts() {
  look();
  return closed_as_known();
}

std::vector<std::size_t> PartSeats::closed_as_known() const {
  std::vector<std::size_t> closed;
  for (std::size_t part = 0; part < seats_.size(); ++part) {
    if (!seats_[part].is_open) closed.push_back(part);
  }
  return closed;
}

void PartSeats::close(std::span<const std::size_t> parts) {
  for (const std::size_t part : parts) seats_[part].is_open = false;
}

void PartSeats::close_all() {
  for (Seat& seat : seats_) seat.is_open = false;
}

PartRound PartSeats::open(std::span<const std::size_t> parts, part_order::Open order) {
  for (const std::size_t part : parts) {
    Seat& seat = seats_[part];
    if (!seat.link) sit_here(part);
    if (!makes_steps_) {
      if (seat.first_slot != 0) seat.left_slots.push_back(seat.first_slot);
      seat.first_slot = order.first_slot = next_slots();
    }
    seat.link->tell(order);
  }
  const std::uint64_t written = makes_steps_ ? 0 : element_count();
  PartRound round = collect(order.id, {parts.begin(), parts.end()}, written);
  for (const std::size_t part : parts) {
    if (seats_[part].link) seats_[part].is_open = round.is_done();
  }
  return round;
}

std::uint32_t PartSeats::next_slots() {
  openings_ += 1;
  return openings_ * kRecordSlots;
}

std::uint32_t PartSeats::take_slots() {
  const std::uint32_t first = next_slots();
  for (Seat& seat : seats_) seat.left_slots.push_back(first);
  return first;
}

PartRound PartSeats::ask_all(const PartOrder& order) { return ask_all(order, element_count()); }

PartRound PartSeats::ask_all(const PartOrder& order, std::uint64_t written) {
  std::vector<std::size_t> all;
  for (std::size_t part = 0; part < seats_.size(); ++part) {
    SPEEDO_ASSERT(seats_[part].is_open);
    all.push_back(part);
  }
  tell_all(order);
  return collect(id_of(order), std::move(all), written);
}

void PartSeats::tell_all(const PartOrder& order) {
  for (const Seat& seat : seats_) {
    if (seat.link) seat.link->tell(order);
  }
}

// One that stands still is given up by the gate, which may take long, or never.
void PartSeats::tell_wait(std::span<const std::size_t> parts, Instant waited) const {
  for (const std::size_t part : parts) {
    if (seats_[part].name.empty()) continue;
    SPEEDO_WARN("the merger of part {}, {}, has not answered for {} s or more", part + 1,
                seats_[part].name,
                std::chrono::duration_cast<std::chrono::seconds>(waited).count());
  }
}

// Every one of them answers once, or is gone.
PartRound PartSeats::collect(std::uint64_t id, std::vector<std::size_t> parts,
                             std::uint64_t written) {
  PartRound round;
  round.written.resize(seats_.size());
  round.copied.resize(seats_.size());
  Instant waited{0};
  while (!parts.empty()) {
    while (!desk_->is_answered_in(kLongWait)) tell_wait(parts, waited += kLongWait);
    auto answered = desk_->wait();
    if (!answered) {
      round.error = Error{ErrorCode::kUnavailable, "the mergers of parts are waited for no longer"};
      return round;
    }
    Seat* const seat = seat_of(answered->link);
    if (seat == nullptr) continue;
    const auto part = static_cast<std::size_t>(seat - seats_.data());
    const bool is_lost = std::holds_alternative<part_answer::Lost>(answered->answer);
    if (!is_lost && order_of(answered->answer) != id) continue;
    if (!is_written_right(part, answered->answer, written)) {
      answered->answer = part_answer::Lost{"it has written something else"};
    }
    take(part, std::move(answered->answer), round);
    std::erase(parts, part);
  }
  return round;
}

// Its chunks of a record of so many floats, in a slot of its own. Or the answer is another one.
bool PartSeats::is_written_right(std::size_t part, const PartAnswer& answer,
                                 std::uint64_t element_count) const {
  const auto* const written = std::get_if<part_answer::Written>(&answer);
  if (written == nullptr) return true;
  const std::uint32_t slot = written->part.slot, first = seats_[part].first_slot;
  return slot >= first && slot - first < kRecordSlots &&
         written->part.checksums.size() ==
             chunks_of_part(element_count, part, setup_.store->parts());
}

void PartSeats::take(std::size_t part, PartAnswer answer, PartRound& round) {
  if (auto* const written = std::get_if<part_answer::Written>(&answer)) {
    round.written[part] = std::move(written->part);
    round.begun_ahead = round.begun_ahead && written->begun_ahead;
  } else if (auto* const copied = std::get_if<part_answer::Copied>(&answer)) {
    const auto got = take_copy(part, std::move(*copied), round);
    if (!got) round.error = got.error();
  } else if (const auto* const rejected = std::get_if<part_answer::Rejected>(&answer)) {
    add_new(rejected->workers, round.rejected);
    add_new(rejected->not_finite, round.not_finite);
  } else if (const auto* const failed = std::get_if<part_answer::Failed>(&answer)) {
    // One that was open and is not where it should be begins anew.
    const bool is_astray = seats_[part].is_open && failed->error.code == ErrorCode::kMismatch;
    if (is_astray) {
      seats_[part].is_open = false;
      round.lost = true;
    } else {
      round.error = failed->error;
    }
  } else if (const auto* const lost = std::get_if<part_answer::Lost>(&answer)) {
    lose(seats_[part], lost->reason);
    round.lost = true;
  }
}

// Values that did not come with the answer lie in the store.
Result<void> PartSeats::take_copy(std::size_t part, part_answer::Copied copied, PartRound& round) {
  if (!seats_[part].name.empty()) {
    const auto count = clipped_count(element_count(), {part, setup_.store->parts()});
    SPEEDO_ASSIGN(copied, get_copy(*setup_.store, part, copied.id, count));
  }
  round.copied[part] = std::move(copied);
  return {};
}

void PartSeats::settle(std::span<const std::size_t> parts, PartStore& store) {
  const bool has_histories = wants_histories(setup_.config.stages);
  for (const std::size_t part : parts) {
    const PartClip clip{part, setup_.store->parts()};
    for (const std::uint32_t first : std::exchange(seats_[part].left_slots, {})) {
      erase_with_copies(store, element_count(), part, first);
      if (!has_histories) continue;
      erase_unfinished(store, {clip, setup_.keeps_copies(), first},
                       clipped_count(element_count(), clip) * (1 + UpdateRule::kHistoriesMax));
    }
  }
}

void leave_out_rejected(const PartRound& round, MergeJob& job, MergeResult& result) {
  result.not_finite.insert(result.not_finite.end(), round.not_finite.begin(),
                           round.not_finite.end());
  for (const WorkerId worker : round.rejected) {
    result.rejected.push_back(worker);
    std::erase_if(job.contributions, [&](const auto& each) { return each.worker == worker; });
  }
}

}  // namespace speedo
