#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/train/master_session.hpp>

#include "train/session/host_quarantine.hpp"
#include "train/session/session_commands.hpp"

namespace speedo {

// The workers of a job: who is admitted, on which connection, and who is ready to train.
//
// Invariant: connections and workers name each other, one to one.
// Invariant: no two workers have the same process (uuid), and no worker number is given twice.
// Thread safety: one thread. Times come from the caller.
class Membership {
 public:
  struct Member {
    PeerId peer;
    std::string name;
    std::uint64_t uuid_high = 0, uuid_low = 0;  // both 0: the worker said none
    bool emulated = false;  // only takes the time of computing
    std::string device;     // the kind of it, without the number of a GPU
    bool ready = false;
    bool known = false;     // to the strategy of this stage; implies ready
    bool finished = false;  // any run
    bool gone = false;      // since training ended: it keeps its place, and is asked for nothing
    Instant heard{0};       // time of the last message
  };
  enum class Departure { kFlap, kExcused };  // whether it counts against the host

  // `config` outlives it.
  explicit Membership(const MasterConfig& config) : config_(config) {}
  // Numbers below `next_worker` were given by earlier masters, to `joined` workers.
  void restore(std::uint64_t next_worker, std::uint64_t joined, std::optional<bool> emulated);

  // A Hello of a process or a connection that has a worker here begins a new incarnation of that
  // worker, which has forgotten the earlier ones: they are to be removed before it is admitted.
  std::vector<WorkerId> earlier_lives(const master_event::Hello& event) const;
  // Refuses a worker of another protocol, one that computes where others are emulated or the other
  // way round, or on what the job's must not, of a host that is kept out, or beyond workers_max.
  bool turns_away(const master_event::Hello& event, Instant now, SessionCommands& out);
  // Requires: no earlier incarnations, and not turned away.
  void admit(const master_event::Hello& event, Instant now, SessionCommands& out);
  // False: its model is another one; it has been refused, and is to be removed.
  // Requires: not ready.
  bool make_ready(WorkerId id, const ReadyMessage& message, SessionCommands& out);
  void finished_run(WorkerId id);
  void gone_at_end(WorkerId id) { members_.at(id).gone = true; }
  // Returns what is known of it.
  Member remove(WorkerId id, Departure departure, Instant now, SessionCommands& out);

  // The worker that a message of this connection speaks for; it counts as heard. None if the
  // sender is not admitted, or speaks for another incarnation.
  std::optional<WorkerId> sender(PeerId peer, std::uint64_t claimed, Instant now);
  std::optional<WorkerId> at(PeerId peer) const;
  const Member* find(WorkerId id) const;
  const std::map<WorkerId, Member>& all() const { return members_; }
  std::uint64_t ready_count() const { return ready_count_; }
  std::uint64_t next_worker() const { return next_worker_; }
  std::uint64_t joined() const { return joined_; }
  std::uint64_t joined_before() const { return joined_before_; }  // with earlier masters alone
  // Whether workers that have finished runs, under whichever master, only emulate computing.
  std::optional<bool> emulated() const { return emulated_; }

  // Workers that the strategy has not met; they are known to it from here on.
  Joined introduce(WorkerId id);
  Joined introduce_all();
  void strategy_is_new();

  // Why the last worker left that could not work, until one gets ready.
  void could_not_work(WorkerId id, const std::string& reason);
  const std::string& last_failure() const { return last_failure_; }
  // A message that has no effect.
  void ignore() { ignored_ += 1; }
  void ignore(PeerId peer, std::string_view what, SessionCommands& out);
  // A name that was mistyped in the list of groups shows here at the latest.
  void note_groups(const std::vector<std::vector<std::string>>& groups, SessionCommands& out) const;
  // Those of these names of workers or hosts that nobody who is ready has.
  void note_absent(std::string_view who_names, const std::set<std::string>& names,
                   SessionCommands& out) const;

  void show(MasterProgress& progress) const;

 private:
  bool refuses_mixture(const master_event::Hello& event, SessionCommands& out) const;
  bool refuses_device(const master_event::Hello& event, SessionCommands& out) const;
  void refuse_protocol(const master_event::Hello& event, SessionCommands& out) const;

  const MasterConfig& config_;
  std::map<WorkerId, Member> members_;
  std::map<PeerId, WorkerId> peers_;
  HostQuarantine quarantine_;
  std::optional<bool> emulated_;  // see emulated()
  std::optional<std::string> device_;  // of workers that have finished runs, under this master
  std::uint64_t next_worker_ = 0;
  std::uint64_t ready_count_ = 0;
  std::uint64_t joined_ = 0;   // that ever were ready, with earlier masters
  std::uint64_t joined_before_ = 0;
  std::uint64_t ignored_ = 0;  // messages
  std::uint64_t quarantined_ = 0;  // Hellos refused because the host is kept out
  std::string last_failure_;
};

}  // namespace speedo
