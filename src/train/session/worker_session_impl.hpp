#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/random.hpp>
#include <speedo/train/worker_session.hpp>

#include "base/note_interval.hpp"

namespace speedo {

// The state of WorkerSession and one handler per event. Sources: worker_session.cpp (connecting and
// handshake), worker_session_work.cpp (runs, leaving).
//
// Invariant: run_ only in kReady; id_ only in kPreparing and kReady.
struct WorkerSession::Impl {
  enum class State {
    kNew,         // before the first Tick
    kBackingOff,  // until retry_at_
    kConnecting,  // Connect is under way
    kGreeting,    // Hello is sent
    kPreparing,   // the net is being built
    kReady,       // waits for orders, or runs one
    kExited,
  };

  explicit Impl(WorkerConfig config_in);

  void handle(const worker_event::Connected& event);
  void handle(const worker_event::ConnectFailed& event);
  void handle(const worker_event::MasterLost& event);
  void handle(const worker_event::Welcome& event);
  void handle(const worker_event::Refused& event);
  void handle(const worker_event::JobPrepared& event);
  void handle(const worker_event::JobFailed& event);
  void handle(const worker_event::TrainOrdered& event);
  void handle(const worker_event::RunDone& event);
  void handle(const worker_event::RunFailed& event);
  void handle(const worker_event::SaveOrdered& event);
  void handle(const worker_event::StateSaved& event);
  void handle(const worker_event::Stop& event);
  void handle(const worker_event::StopRequested& event);
  void handle(const worker_event::EndLookedFor& event);
  void handle(const worker_event::Tick& event);

  bool greeted() const {
    return state_ == State::kGreeting || state_ == State::kPreparing || state_ == State::kReady;
  }
  void connect();
  void back_off(const std::string& reason);
  void join_again(const std::string& reason);
  double wait_to_connect(const std::string& reason);
  void look_for_end();
  void check_connect_timeout();
  void check_answers();
  void beat(std::uint64_t progress);
  void send_ready();
  bool last_preparation();
  void cancel_run();
  void take_back();
  void end_incarnation();
  void leave(std::uint32_t code, const std::string& reason);
  void exit(std::optional<Error> error);

  template <class... Args>
  void note(bool warning, fmt::format_string<Args...> format, Args&&... args) {
    out_.emplace_back(worker_command::Note{
        warning, clip_text(fmt::format(format, std::forward<Args>(args)...))});
  }

  WorkerConfig config_;
  Random random_;
  State state_ = State::kNew;
  WorkerCommands out_;                   // of the event being handled

  Instant now_{0};
  Instant retry_at_{0};
  std::optional<Instant> alone_since_;   // without a master that admitted this worker
  Instant asked_at_{0};                  // the last Hello or Ready
  Instant beaten_at_{0};
  std::string last_failure_;
  unsigned attempts_ = 0;                // since the last run that went well
  NoteInterval store_notes_;             // that the store fails this worker
  bool is_quiet_ = false;                // that was said a while ago, and is so again

  std::optional<std::uint64_t> term_;   // of the last master that admitted this worker
  bool looking_for_end_ = false;         // LookForEnd is not answered yet
  std::optional<WorkerId> id_;
  Digest model_;                         // that was prepared in this incarnation
  unsigned preparations_ = 0;            // PrepareJob commands not answered yet
  std::optional<RunId> run_;             // under way
  std::optional<RunId> last_ordered_;    // in this incarnation
  std::optional<std::uint64_t> saving_;  // the iteration of a state that is being saved in it
};

}  // namespace speedo
