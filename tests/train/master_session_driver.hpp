#pragma once

// A MasterSession driven by short calls; what it commands comes back as text, but for notes and
// what it says of the store, which are kept apart.

#include <bit>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <speedo/train/master_session.hpp>

namespace speedo {

inline std::string to_text(const master_command::SendWelcome& c) {
  return fmt::format("welcome {} as {}", c.peer.value, c.message.worker);
}
inline std::string to_text(const master_command::SendRefused& c) {
  return fmt::format("refuse {} code {}", c.peer.value, c.message.code);
}
inline std::string to_text(const master_command::SendTrain& c) {
  const TrainMessage& m = c.message;
  return fmt::format("train {} run {} it {} v {} data {}/{}", c.peer.value, m.run, m.iteration,
                     m.version, m.first_step, m.next_step);
}
inline std::string to_text(const master_command::SendStop& c) {
  return fmt::format("stop {}", c.peer.value);
}
inline std::string to_text(const master_command::StartMerge& c) {
  std::string text = fmt::format("{} {} it {}:", c.mean ? "mean" : "merge", c.merge.value,
                                 c.iteration);
  for (const auto& each : c.contributions) {
    text += fmt::format(" {}.{}", each.worker.value, each.run.value);
  }
  return text;
}
inline std::string to_text(const master_command::EnterStage& c) {
  return fmt::format("enter {}", c.stage);
}
inline std::string to_text(const master_command::StartTest& c) {
  return fmt::format("test {}", c.iteration);
}
inline std::string to_text(const master_command::StartSnapshot& c) {
  return fmt::format("snapshot {}", c.iteration);
}
inline std::string to_text(const master_command::Finish& c) {
  if (!c.error) return "finish";
  return fmt::format("finish code {}", static_cast<int>(c.error->code));
}
inline std::string to_text(const master_command::FinishSnapshot& c) {
  std::string text = fmt::format("states {}:", c.iteration);
  for (const WorkerId worker : c.workers) text += fmt::format(" {}", worker.value);
  return text;
}
inline std::string to_text(const master_command::SendSaveState& c) {
  std::string text = fmt::format("save {} it {}", c.peer.value, c.message.iteration);
  if (c.message.merged_run != kNoRun) text += fmt::format(" merged {}", c.message.merged_run);
  if (c.message.open_run != kNoRun) text += fmt::format(" before {}", c.message.open_run);
  return text;
}
inline std::string to_text(const master_command::EraseSeat& c) {
  return fmt::format("erase seat {}", c.seat);
}
inline std::string to_text(const master_command::EraseWorker&) { return {}; }
inline std::string to_text(const master_command::StopWaitingForStore&) { return {}; }
inline std::string to_text(const master_command::Note&) { return {}; }
inline std::string to_text(const master_command::ExpectMerge&) { return {}; }

struct MasterDriver {
  explicit MasterDriver(const MasterConfig& config_in, StrategyFactory make = make_strategy)
      : config(config_in), session(config_in, std::move(make)) {}
  MasterDriver(const MasterConfig& config_in, const std::string& strategy)
      : MasterDriver(with_strategy(config_in, strategy)) {}

  static MasterConfig with_strategy(MasterConfig config, const std::string& name) {
    config.stages.front().strategy.name = name;
    return config;
  }

  std::string on(const MasterEvent& event) {
    std::string text;
    for (const MasterCommand& command : session.on(event)) {
      if (const auto* note = std::get_if<master_command::Note>(&command)) {
        notes.push_back(note->text);
        continue;
      }
      if (const auto* c = std::get_if<master_command::EraseWorker>(&command)) {
        erased.push_back(c->worker.value);
        continue;
      }
      if (const auto* c = std::get_if<master_command::ExpectMerge>(&command)) {
        expected.push_back(c->merge);
        continue;
      }
      if (std::holds_alternative<master_command::StopWaitingForStore>(command)) {
        stopped_waiting += 1;
        continue;
      }
      if (const auto* c = std::get_if<master_command::Finish>(&command)) error = c->error;
      if (const auto* c = std::get_if<master_command::SendRefused>(&command)) {
        refusal = c->message.reason;
      }
      if (const auto* c = std::get_if<master_command::SendTrain>(&command)) {
        trains[c->peer.value] = c->message;
      }
      if (const auto* c = std::get_if<master_command::StartMerge>(&command)) last_merge = *c;
      if (const auto* c = std::get_if<master_command::EnterStage>(&command)) last_entry = *c;
      const std::string one = std::visit([](const auto& c) { return to_text(c); }, command);
      text += (text.empty() ? "" : "; ") + one;
    }
    return text;
  }

  // Each on a host of its own, unless it is named.
  std::string hello(std::uint64_t peer, const std::string& name = {}, std::uint64_t uuid = 0) {
    const std::string own = fmt::format("host{}/1/0", peer);
    return on(master_event::Hello{
        {peer}, {kProtocolVersion, name.empty() ? own : name, "cpu", uuid, uuid}});
  }
  std::string ready(std::uint64_t peer, std::uint64_t worker) {
    return on(master_event::Ready{{peer}, {worker, config.model.high, config.model.low}});
  }
  // Hello and Ready of the worker that gets this number.
  std::string join(std::uint64_t peer, std::uint64_t worker) {
    hello(peer);
    return ready(peer, worker);
  }
  std::string trained(std::uint64_t peer, std::uint64_t worker, std::uint64_t run,
                      float loss = 1.0F, std::uint64_t base = 0, std::uint64_t compute_us = 0) {
    return on(master_event::Trained{
        {peer}, {worker, run, std::bit_cast<std::uint32_t>(loss), base, 10,
                 {.forward_us = compute_us}, {}}});
  }
  std::string beat(std::uint64_t peer, std::uint64_t worker, std::uint64_t run,
                   std::uint64_t progress) {
    return on(master_event::Beat{{peer}, {worker, run, progress}});
  }
  std::string merged(std::uint64_t merge, std::uint64_t version,
                     std::vector<WorkerId> rejected = {}) {
    return on(master_event::Merged{{merge}, {version}, std::move(rejected)});
  }
  std::string leave(std::uint64_t peer, std::uint64_t worker) {
    return on(master_event::Leave{{peer}, {worker, 0, "why"}});
  }
  std::string lost(std::uint64_t peer) { return on(master_event::PeerLost{{peer}, "reset"}); }
  std::string one_tick(int seconds) {
    now = seconds;
    return on(master_event::Tick{std::chrono::seconds(1000 + seconds)});
  }
  // Every second from the last one on, as a shell does.
  std::string tick(int seconds) {
    std::string text;
    for (int at = now < 0 ? seconds : now + 1; at <= seconds; ++at) {
      const std::string one = one_tick(at);
      text += (text.empty() || one.empty() ? "" : "; ") + one;
    }
    return text;
  }
  std::string entered(std::uint64_t version) { return on(master_event::StageEntered{{version}}); }
  std::string tested(std::uint64_t iteration) {
    return on(master_event::Tested{iteration, 0.5F, 1.5F});
  }
  std::string snapshot_done(std::uint64_t iteration) {
    return on(master_event::SnapshotDone{iteration});
  }
  std::string saved(std::uint64_t peer, std::uint64_t worker, std::uint64_t iteration,
                    std::uint32_t code = 0) {
    return on(master_event::StateSaved{{peer}, {worker, iteration, code, code ? "why" : ""}});
  }
  bool noted(const std::string& part) const {
    for (const std::string& note : notes) {
      if (note.find(part) != std::string::npos) return true;
    }
    return false;
  }

  MasterConfig config;
  MasterSession session;
  std::vector<std::string> notes;
  std::vector<std::uint64_t> erased;   // workers
  int stopped_waiting = 0;
  std::optional<Error> error;
  std::string refusal;
  std::map<std::uint64_t, TrainMessage> trains;   // the last one of each connection
  master_command::StartMerge last_merge{};
  std::vector<master_command::StartMerge> expected;
  master_command::EnterStage last_entry{};
  int now = -1;
};

inline MasterConfig config_for(std::uint64_t workers, std::uint64_t max_iteration) {
  MasterConfig config;
  config.workers_start = workers;
  config.max_iteration = max_iteration;
  config.model = {11, 12};
  config.store = StoreAddress("unix:///r.sock");
  config.job = "job";
  return config;
}

}  // namespace speedo
