#include "sim/event_log.hpp"

#include <bit>
#include <string_view>

#include <fmt/format.h>

#include <speedo/base/random.hpp>

namespace speedo::sim {
namespace {

// What is worth a line of each event and command: a name and up to four numbers.
struct Line {
  const char* what;
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
};

Line line(const master_event::Hello& e) { return {"Hello", e.peer.value}; }
Line line(const master_event::Ready& e) { return {"Ready", e.peer.value, e.message.worker}; }
Line line(const master_event::Trained& e) {
  return {"Trained", e.peer.value, e.message.worker, e.message.run, e.message.base_version};
}
Line line(const master_event::Leave& e) {
  return {"Leave", e.peer.value, e.message.worker, e.message.code};
}
Line line(const master_event::StateSaved& e) {
  return {"StateSaved", e.message.worker, e.message.iteration, e.message.code};
}
Line line(const master_event::Beat& e) {
  return {"Beat", e.message.worker, e.message.run, e.message.progress};
}
Line line(const master_event::PeerLost& e) { return {"PeerLost", e.peer.value}; }
Line line(const master_event::Merged& e) {
  return {"Merged", e.merge.value, e.version.value, e.rejected.size()};
}
Line line(const master_event::MergeFailed& e) {
  return {"MergeFailed", e.merge.value, static_cast<std::uint64_t>(e.error.code)};
}
Line line(const master_event::StageEntered& e) { return {"StageEntered", e.version.value}; }
Line line(const master_event::StageFailed& e) {
  return {"StageFailed", static_cast<std::uint64_t>(e.error.code)};
}
Line line(const master_event::Tested& e) {
  return {"Tested", e.iteration, std::bit_cast<std::uint32_t>(e.loss)};
}
Line line(const master_event::TestFailed&) { return {"TestFailed"}; }
Line line(const master_event::SnapshotDone& e) { return {"SnapshotDone", e.iteration}; }
Line line(const master_event::SnapshotRequested&) { return {"SnapshotRequested"}; }
Line line(const master_event::SnapshotFailed&) { return {"SnapshotFailed"}; }
Line line(const master_event::StoreLost& e) {
  return {"StoreLost", static_cast<std::uint64_t>(e.error.code)};
}
Line line(const master_event::StoreBack&) { return {"StoreBack"}; }
Line line(const master_event::StopRequested&) { return {"StopRequested"}; }
Line line(const master_event::Tick& e) {
  return {"Tick", static_cast<std::uint64_t>(e.now.count())};
}

Line line(const master_command::SendWelcome& c) {
  return {"SendWelcome", c.peer.value, c.message.worker, c.message.term};
}
Line line(const master_command::SendRefused& c) {
  return {"SendRefused", c.peer.value, c.message.code};
}
Line line(const master_command::SendTrain& c) {
  return {"SendTrain", c.peer.value, c.message.run, c.message.version, c.message.shard};
}
Line line(const master_command::SendStop& c) { return {"SendStop", c.peer.value}; }
Line line(const master_command::SendSaveState& c) {
  return {"SendSaveState", c.peer.value, c.message.iteration, c.message.merged_run};
}
Line line(const master_command::StartMerge& c) {
  const auto& first = c.contributions.front();
  return {"StartMerge", c.iteration, c.contributions.size(), first.worker.value, first.run.value};
}
Line line(const master_command::ExpectMerge& c) {
  return {"ExpectMerge", c.merge.iteration, c.merge.contributions.size()};
}
Line line(const master_command::EnterStage& c) { return {"EnterStage", c.stage}; }
Line line(const master_command::StartTest& c) { return {"StartTest", c.iteration}; }
Line line(const master_command::StartSnapshot& c) { return {"StartSnapshot", c.iteration}; }
Line line(const master_command::FinishSnapshot& c) {
  return {"FinishSnapshot", c.iteration, c.workers.size()};
}
Line line(const master_command::EraseWorker& c) { return {"EraseWorker", c.worker.value}; }
Line line(const master_command::EraseSeat& c) { return {"EraseSeat", c.seat}; }
Line line(const master_command::StopWaitingForStore&) { return {"StopWaitingForStore"}; }
Line line(const master_command::Note& c) { return {"Note", c.warning}; }
Line line(const master_command::Finish& c) {
  return {"Finish", c.error ? static_cast<std::uint64_t>(c.error->code) + 1 : 0};
}

Line line(const worker_event::Connected&) { return {"Connected"}; }
Line line(const worker_event::ConnectFailed&) { return {"ConnectFailed"}; }
Line line(const worker_event::MasterLost&) { return {"MasterLost"}; }
Line line(const worker_event::Welcome& e) {
  return {"Welcome", e.message.worker, e.message.term};
}
Line line(const worker_event::Refused& e) { return {"Refused", e.message.code}; }
Line line(const worker_event::JobPrepared&) { return {"JobPrepared"}; }
Line line(const worker_event::JobFailed& e) {
  return {"JobFailed", static_cast<std::uint64_t>(e.error.code)};
}
Line line(const worker_event::TrainOrdered& e) {
  return {"TrainOrdered", e.message.run, e.message.version};
}
Line line(const worker_event::RunDone& e) {
  return {"RunDone", e.report.run.value, e.report.base.value,
          std::bit_cast<std::uint32_t>(e.report.loss)};
}
Line line(const worker_event::RunFailed& e) {
  return {"RunFailed", e.run.value, static_cast<std::uint64_t>(e.error.code)};
}
Line line(const worker_event::SaveOrdered& e) {
  return {"SaveOrdered", e.message.worker, e.message.iteration};
}
Line line(const worker_event::StateSaved& e) {
  return {"StateSaved", e.order.worker, e.order.iteration, e.error.has_value()};
}
Line line(const worker_event::Stop&) { return {"Stop"}; }
Line line(const worker_event::EndLookedFor& e) { return {"EndLookedFor", e.job_is_over}; }
Line line(const worker_event::StopRequested&) { return {"StopRequested"}; }
Line line(const worker_event::Tick& e) {
  return {"Tick", static_cast<std::uint64_t>(e.now.count()), e.progress};
}

Line line(const worker_command::Connect&) { return {"Connect"}; }
Line line(const worker_command::SendHello&) { return {"SendHello"}; }
Line line(const worker_command::SendReady& c) { return {"SendReady", c.message.worker}; }
Line line(const worker_command::SendTrained& c) {
  return {"SendTrained", c.message.worker, c.message.run};
}
Line line(const worker_command::SendLeave& c) {
  return {"SendLeave", c.message.worker, c.message.code};
}
Line line(const worker_command::SendStateSaved& c) {
  return {"SendStateSaved", c.message.worker, c.message.iteration, c.message.code};
}
Line line(const worker_command::SaveState& c) {
  return {"SaveState", c.order.worker, c.order.iteration};
}
Line line(const worker_command::SendBeat& c) {
  return {"SendBeat", c.message.worker, c.message.run, c.message.progress};
}
Line line(const worker_command::PrepareJob& c) { return {"PrepareJob", c.welcome.worker}; }
Line line(const worker_command::LookForEnd& c) { return {"LookForEnd", c.term}; }
Line line(const worker_command::StartRun& c) { return {"StartRun", c.order.run}; }
Line line(const worker_command::CancelRun&) { return {"CancelRun"}; }
Line line(const worker_command::Note& c) { return {"Note", c.warning}; }
Line line(const worker_command::Exit& c) {
  return {"Exit", c.error ? static_cast<std::uint64_t>(c.error->code) + 1 : 0};
}

template <class Variant>
Line line_of(const Variant& variant) {
  return std::visit([](const auto& each) { return line(each); }, variant);
}

}  // namespace

void EventLog::add(const MasterNode& node, const MasterEvent& event) {
  const Line l = line_of(event);
  add(Entry{queue_.now(), 'M', false, node.id().value, l.what, {l.a, l.b, l.c, l.d}});
}
void EventLog::add(const MasterNode& node, const MasterCommand& command) {
  const Line l = line_of(command);
  add(Entry{queue_.now(), 'M', true, node.id().value, l.what, {l.a, l.b, l.c, l.d}});
}
void EventLog::add(const WorkerNode& node, const WorkerEvent& event) {
  const Line l = line_of(event);
  add(Entry{queue_.now(), 'W', false, node.id().value, l.what, {l.a, l.b, l.c, l.d}});
}
void EventLog::add(const WorkerNode& node, const WorkerCommand& command) {
  const Line l = line_of(command);
  add(Entry{queue_.now(), 'W', true, node.id().value, l.what, {l.a, l.b, l.c, l.d}});
}
void EventLog::add(const char* what, std::uint64_t a, std::uint64_t b) {
  add(Entry{queue_.now(), '*', false, 0, what, {a, b, 0, 0}});
}

// The name enters the hash by its characters: addresses differ between programs.
void EventLog::add(const Entry& entry) {
  std::uint64_t hash = hash_ ^ static_cast<std::uint64_t>(entry.when.count());
  for (const char* c = entry.what; *c != 0; ++c) {
    hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3U;
  }
  hash = mix64(hash + entry.node * 2 + static_cast<std::uint64_t>(entry.command));
  for (const std::uint64_t value : entry.values) hash = mix64(hash ^ value);
  hash_ = hash;
  if (each_) each_(to_text(entry));
  if (kept_.size() < kKept) kept_.resize(kKept);
  // Clocks tick all the time: a line of them tells nobody anything.
  if (std::string_view(entry.what) == "Tick") return;
  kept_[count_++ % kKept] = entry;
}

std::string EventLog::to_text(const Entry& entry) {
  const double seconds = std::chrono::duration<double>(entry.when).count();
  const char* arrow = entry.side == '*' ? "  " : entry.command ? "->" : "<-";
  std::string text = fmt::format("{:12.6f} ", seconds);
  text += entry.side == '*' ? std::string("world  ")
                            : fmt::format("{}{:<5} ", entry.side == 'M' ? "m" : "w", entry.node);
  text += fmt::format("{} {}", arrow, entry.what);
  for (const std::uint64_t value : entry.values) text += fmt::format(" {}", value);
  return text;
}

std::vector<std::string> EventLog::last() const {
  std::vector<std::string> lines;
  const std::uint64_t first = count_ > kKept ? count_ - kKept : 0;
  for (std::uint64_t i = first; i < count_; ++i) lines.push_back(to_text(kept_[i % kKept]));
  return lines;
}

}  // namespace speedo::sim
