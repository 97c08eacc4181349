#include "sim/fault_ledger.hpp"

#include <fmt/format.h>

namespace speedo::sim {

void add(const FaultTable& from, FaultTable& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i].drawn += from[i].drawn;
    to[i].strikes += from[i].strikes;
    to[i].effects += from[i].effects;
  }
}

std::vector<FaultKind> idle_kinds(const FaultTable& table, bool in_parts) {
  const std::size_t wanted = in_parts ? table.size() : static_cast<std::size_t>(kFirstShardFault);
  std::uint64_t drawn = 0;
  for (std::size_t i = 0; i < wanted; ++i) drawn += table[i].drawn;
  // Each kind is drawn as often as any other, in the mean.
  const bool draws_enough = drawn >= kDrawnForVerdict * wanted;
  std::vector<FaultKind> kinds;
  for (std::size_t i = 0; i < wanted; ++i) {
    const bool never_drawn = table[i].drawn == 0 && draws_enough;
    const bool idle = table[i].strikes == 0 || table[i].effects == 0;
    if (never_drawn || (idle && table[i].drawn >= kDrawnForVerdict)) {
      kinds.push_back(static_cast<FaultKind>(i));
    }
  }
  return kinds;
}

std::string describe_idle(FaultKind kind, const FaultCount& count) {
  if (count.drawn == 0) {
    return fmt::format("fault '{}' was never drawn: nothing was proven of it", to_string(kind));
  }
  const char* const outcome = count.strikes == 0 ? "never struck" : "never had an effect";
  return fmt::format("fault '{}' was drawn {} times and {}: nothing was proven of it",
                     to_string(kind), count.drawn, outcome);
}

void FaultMark::struck() const {
  if (ledger_ != nullptr) ledger_->entries_[index_].struck = true;
}

void FaultMark::felt() const {
  struck();
  if (ledger_ != nullptr) ledger_->entries_[index_].felt = true;
}

FaultMark FaultLedger::drawn(FaultKind kind) {
  entries_.push_back({kind});
  return FaultMark(*this, entries_.size() - 1);
}

FaultTable FaultLedger::table() const {
  FaultTable table{};
  for (const Entry& entry : entries_) {
    FaultCount& count = table[static_cast<std::size_t>(entry.kind)];
    count.drawn += 1;
    count.strikes += entry.struck;
    count.effects += entry.felt;
  }
  return table;
}

}  // namespace speedo::sim
