// The master's session: what workers have alone, on its way into snapshots.

#include <bit>
#include <map>
#include <string>

#include "train/note_text.hpp"
#include "train/session/master_session_impl.hpp"

namespace speedo {

// Before any later order reaches them: what they put into the store is of the weights that the
// snapshot has. Of a run that is not in those it is what the run began with.
void MasterSession::Impl::ask_for_states() {
  if (states_.is_of(iteration())) return;
  std::map<WorkerId, std::string> asked;
  for (const auto& [id, member] : members_.all()) {
    if (workers_are_sent_away_ || member.gone || !runs_.was_ordered(id)) continue;
    const Runs::Order last = runs_.last(id);
    out_.add(master_command::SendSaveState{
        member.peer,
        {id.value, iteration(), last.merged_run, std::bit_cast<std::uint32_t>(last.merged_weight),
         leases_.has_begun_open(id) ? last.run.value : kNoRun}});
    asked.emplace(id, member.name);
  }
  states_.begin(iteration(), std::move(asked), clock_.now());
}

// Also once training is over: the last snapshot waits for it.
void MasterSession::Impl::handle(const master_event::StateSaved& event) {
  if (finished()) return;
  const auto id = members_.sender(event.peer, event.message.worker, clock_.now());
  if (!id) return ignore(event.peer, "state");
  states_.answered(*id, event.message, out_);
}

bool MasterSession::Impl::gathers_at_end() const {
  return config_.snapshot_workers && ending_ && ending_->plan().snapshot;
}

void MasterSession::Impl::finish_snapshot() {
  if (!config_.snapshot_workers || finished() || !states_.is_over()) return;
  const auto iteration = jobs_.take_unfinished_snapshot();
  if (!iteration) return;
  std::vector<WorkerId> saved = states_.saved();
  out_.note(false, "the snapshot of iteration {} has the states of {}", *iteration,
            count_workers(saved.size()));
  out_.add(master_command::FinishSnapshot{*iteration, std::move(saved)});
}

}  // namespace speedo
