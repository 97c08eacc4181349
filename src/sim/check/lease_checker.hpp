#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <speedo/base/clock.hpp>

#include "sim/proof_store.hpp"
#include "sim/check/violations.hpp"

namespace speedo::sim {

// Who may act as a job's master, by what the store's server has executed: mastership goes to one at
// a time, one that was replaced changes nothing, and one that is refused its lease gives up.
class LeaseChecker {
 public:
  // Of a process: whether it is dead. `clock`: the server's.
  using IsDead = std::function<bool(std::string_view holder)>;
  LeaseChecker(const Clock& clock, IsDead is_dead, Violations& violations)
      : clock_(clock), is_dead_(std::move(is_dead)), violations_(violations) {}

  // Every operation that was executed.
  void done(const KvOperation& operation, std::size_t server = 0);
  // One of these whose answer was lost: nobody has heard of it.
  void unanswered(const KvOperation& operation);
  // One that a master's process asked for. `term`: that it was granted; 0: none yet.
  // Servers but the first know of no lease, and of a master from when it writes there.
  void asked_by_master(std::uint64_t term, const KvOperation& operation, std::size_t server = 0);
  // A master begins, with its merger and its session.
  void begins(std::uint64_t term);
  // What it knew of the mastership may be gone.
  void store_lost_data(std::size_t server = 0);

 private:
  void claimed(const KvMaster& master);
  void refused(const KvMaster& master);

  const Clock& clock_;
  const IsDead is_dead_;
  Violations& violations_;
  std::string holder_;                      // empty: nobody known
  Instant until_{0};                        // its lease
  std::map<std::size_t, std::uint64_t> known_terms_;  // by server: the highest that it knows
  std::map<std::string, Instant> refused_;            // by holder: when it was told so
};

}  // namespace speedo::sim
