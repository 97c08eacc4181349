#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/fault_kind.hpp"

namespace speedo::sim {

// Of one kind of fault, over one training or many.
struct FaultCount {
  std::uint64_t drawn = 0;    // came up before the training was over
  std::uint64_t strikes = 0;  // found what they were aimed at
  std::uint64_t effects = 0;  // and were felt there
  bool operator==(const FaultCount&) const = default;
};
using FaultTable = std::array<FaultCount, kFaultKinds>;  // by kind

void add(const FaultTable& from, FaultTable& to);

// So many drawn faults of a kind that not one of them was felt by chance alone is out of question.
inline constexpr std::uint64_t kDrawnForVerdict = 50;
// Kinds that were drawn often and never struck, or struck and were never felt, or were never drawn
// where others were often enough: what such a campaign says of them is worth nothing.
// Without `in_parts` only of those that befall every job.
std::vector<FaultKind> idle_kinds(const FaultTable& table, bool in_parts = true);
// "fault 'KIND' was drawn N times and ...", or "... was never drawn ...".
std::string describe_idle(FaultKind kind, const FaultCount& count);

class FaultLedger;

// One fault that came up. Whoever it strikes keeps a copy, and says what became of it. Marks are
// values; the ledger outlives them. One made from nothing is of no fault.
class FaultMark {
 public:
  FaultMark() = default;
  void struck() const;
  void felt() const;  // struck, too

 private:
  friend class FaultLedger;
  FaultMark(FaultLedger& ledger, std::size_t index) : ledger_(&ledger), index_(index) {}
  FaultLedger* ledger_ = nullptr;
  std::size_t index_ = 0;
};

// Of those that are kept by what they strike.
inline void feel(const std::map<std::uint64_t, FaultMark>& marks, std::uint64_t key) {
  if (const auto found = marks.find(key); found != marks.end()) found->second.felt();
}

// The faults of one training. However often a fault is felt, it counts once.
class FaultLedger {
 public:
  FaultLedger() = default;
  FaultLedger(const FaultLedger&) = delete;
  FaultLedger& operator=(const FaultLedger&) = delete;
  FaultMark drawn(FaultKind kind);
  FaultTable table() const;

 private:
  friend class FaultMark;
  struct Entry {
    FaultKind kind;
    bool struck = false, felt = false;
  };
  std::vector<Entry> entries_;
};

}  // namespace speedo::sim
