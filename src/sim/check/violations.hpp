#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace speedo::sim {

// What is checked, by name: a violation says which of these found it.
enum class Check {
  kSchedule,     // what a strategy decides
  kMembership,   // who is admitted, and how many
  kOrders,       // what workers are told to train, and from which weights they do
  kMerges,       // what a session has merged, and with which weights
  kOnce,         // contributions and shares of the data: merged once, or known to be gone
  kWeights,      // what a merge came to
  kRejection,    // a contribution that is left out must be at fault
  kPublication,  // what readers of the store see, and when
  kErasure,      // records of workers that are gone
  kStart,        // what a new master goes on from
  kLease,        // one master at a time, and nothing from one that was replaced
  kJobs,         // tests, snapshots, stages
  kMessages,     // lengths, order, and an end of what is said
  kProgress,     // nobody waits for nobody, and training reaches its end
  kProcesses,    // no process ends with an error of its own
  kRepeatable,   // the same seed goes the same way
};
inline constexpr const char* kCheckNames[] = {"schedule", "membership", "orders",    "merges",
                                              "once",     "weights",    "rejection", "publication",
                                              "erasure",  "start",      "lease",     "jobs",
                                              "messages", "progress",   "processes", "repeatable"};
static_assert(std::size(kCheckNames) == static_cast<std::size_t>(Check::kRepeatable) + 1);
inline const char* to_string(Check check) { return kCheckNames[static_cast<std::size_t>(check)]; }

// What the checkers found: the first violation counts, what follows is mostly its consequence.
class Violations {
 public:
  void report(Check check, std::string text) {
    if (any()) return;
    check_ = check;
    first_ = std::move(text);
  }
  void expect(Check check, bool holds, const char* otherwise) {
    if (!holds) report(check, otherwise);
  }
  bool any() const { return !first_.empty(); }
  const std::string& first() const { return first_; }
  // That found it; "" if nothing was found.
  const char* check() const { return any() ? to_string(check_) : ""; }

 private:
  Check check_ = Check::kSchedule;
  std::string first_;
};

}  // namespace speedo::sim
