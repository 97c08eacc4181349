#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/part_store.hpp>

#include "train/parts/part_links.hpp"
#include "train/parts/part_merger.hpp"
#include "train/parts/part_orders.hpp"

namespace speedo {

// What all parts have made of one order.
struct PartRound {
  std::vector<WrittenPart> written;  // by part; those that did not are empty
  std::vector<part_answer::Copied> copied;
  std::vector<WorkerId> rejected;    // in their order, each once
  std::vector<WorkerId> not_finite;  // those of them that are so in some part
  std::optional<Error> error;        // of one that failed
  bool lost = false;                 // a merger is gone: what was ordered is to be ordered anew
  bool begun_ahead = true;           // by all
  bool is_done() const { return !lost && !error && rejected.empty(); }
};

// The job of a merge without the contributions that some part has rejected, which the result names.
void leave_out_rejected(const PartRound& round, MergeJob& job, MergeResult& result);

// The mergers of a job, one for each part: here, until one that runs elsewhere offers itself, and
// again when that is gone. Thread safety: one thread.
class PartSeats {
 public:
  // `setup`: of every part, its clip aside.
  PartSeats(PartSetup setup, std::shared_ptr<PartDesk> desk);
  ~PartSeats();

  std::size_t count() const { return seats_.size(); }
  // At who came and who went: it may close parts.
  void look();
  // Parts without a merger that was opened, after a look.
  std::vector<std::size_t> closed_parts();
  // The same, of what was known at the last look: what was open stays so.
  std::vector<std::size_t> closed_as_known() const;
  // These mergers are to be opened anew before their next order.
  void close(std::span<const std::size_t> parts);
  void close_all();
  // Makes a merger for each of these parts, where there is none, and opens it.
  PartRound open(std::span<const std::size_t> parts, part_order::Open order);
  // Orders all of them the same. Requires: all are open.
  PartRound ask_all(const PartOrder& order);
  // The same of one by which parts write a record of so many floats, not the weights.
  PartRound ask_all(const PartOrder& order, std::uint64_t written);
  void tell_all(const PartOrder& order);
  void decide(std::uint64_t id, bool commit) { tell_all(part_order::Decide{id, commit}); }
  // For what is put in the place of all mergers, before the next ones are opened: the first of
  // kRecordSlots slots, above all that were given to mergers.
  std::uint32_t take_slots();
  // Opened mergers have what they wrote made visible: what their predecessors wrote may go.
  void settle(std::span<const std::size_t> parts, PartStore& store);
  std::uint64_t next_id() { return ++ids_; }

 private:
  struct Seat {
    std::shared_ptr<PartLink> link;
    std::uint64_t number = 0;      // of the link
    std::string name;              // of one that runs elsewhere; "": here
    bool is_open = false;
    std::uint32_t first_slot = 0;  // of the newest that was opened
    std::vector<std::uint32_t> left_slots = {};  // of those before it
  };
  void sit(std::size_t part, std::shared_ptr<PartLink> link, std::string name);
  void sit_here(std::size_t part);
  void take_offers();
  void lose(Seat& seat, const std::string& reason);
  Seat* seat_of(std::uint64_t link);
  std::uint32_t next_slots();
  void tell_wait(std::span<const std::size_t> parts, Instant waited) const;
  PartRound collect(std::uint64_t id, std::vector<std::size_t> parts, std::uint64_t written);
  bool is_written_right(std::size_t part, const PartAnswer& answer,
                        std::uint64_t element_count) const;
  void take(std::size_t part, PartAnswer answer, PartRound& round);
  Result<void> take_copy(std::size_t part, part_answer::Copied copied, PartRound& round);
  std::uint64_t element_count() const {
    return static_cast<std::uint64_t>(setup_.layout.element_count());
  }

  const PartSetup setup_;
  const std::shared_ptr<PartDesk> desk_;
  const bool makes_steps_;  // of replicated updates: mergers write nothing when they are opened
  std::vector<Seat> seats_;
  std::uint64_t ids_ = 0, links_ = 0;
  std::uint32_t openings_ = 0;
};

}  // namespace speedo
