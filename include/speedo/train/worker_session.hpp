#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/result.hpp>
#include <speedo/train/messages.hpp>
#include <speedo/train/weights_check.hpp>

namespace speedo {

struct WorkerConfig {
  std::string name, device;
  std::string master;                        // its address, for messages
  std::uint64_t uuid_high = 0, uuid_low = 0;  // see HelloMessage
  std::uint64_t seed = 0;                    // of the jitter between attempts to connect
  std::chrono::seconds connect_timeout{0};   // give up (kUnavailable) after so long; 0: never
};

// What a finished run says.
struct RunReport {
  RunId run;
  float loss = 0.0F;
  Version base;
  std::uint64_t samples = 0;
  PhaseTimes phases = {};
  Traffic traffic = {};
  std::optional<WeightsCheck> check = std::nullopt;  // of a replica, now and then
  std::string fault = {};  // of a loss that is not finite: see TrainedMessage
  ReadFaults read_faults = {};  // since the report before
};

namespace worker_event {
struct Connected {};
struct ConnectFailed {
  std::string reason;
  std::optional<ErrorCode> for_good = {};  // another attempt would end the same way
};
struct MasterLost { std::string reason; };
struct Welcome { WelcomeMessage message; };
struct Refused { RefusedMessage message; };
struct JobPrepared { Digest model; };       // net built from the job's text
struct JobFailed { Error error; };          // store, net or data cannot be used
struct TrainOrdered { TrainMessage message; };
struct RunDone { RunReport report; };       // the contribution is in the store
struct RunFailed { RunId run; Error error; };
struct SaveOrdered { SaveStateMessage message; };
struct StateSaved { SaveStateMessage order; std::optional<Error> error; };
struct Stop { StopMessage message; };       // from the master
struct StopRequested { std::string reason; };  // signal
struct EndLookedFor { bool job_is_over; };  // false: not, or the store cannot say
// At least every kBeatInterval. `progress`: of the run under way, see BeatMessage.
struct Tick { Instant now; std::uint64_t progress = 0; };
}  // namespace worker_event
using WorkerEvent =
    std::variant<worker_event::Connected, worker_event::ConnectFailed, worker_event::MasterLost,
                 worker_event::Welcome, worker_event::Refused, worker_event::JobPrepared,
                 worker_event::JobFailed, worker_event::TrainOrdered, worker_event::RunDone,
                 worker_event::RunFailed, worker_event::SaveOrdered, worker_event::StateSaved,
                 worker_event::Stop, worker_event::StopRequested, worker_event::EndLookedFor,
                 worker_event::Tick>;

namespace worker_command {
// Drops the connection there may be, without MasterLost for it. One answer: Connected,
// ConnectFailed.
struct Connect {};
struct SendHello { HelloMessage message; };
struct SendReady { ReadyMessage message; };
struct SendTrained { TrainedMessage message; };
struct SendLeave { LeaveMessage message; };
struct SendStateSaved { StateSavedMessage message; };
struct SendBeat { BeatMessage message; };
// Each is answered exactly once, in order: JobPrepared or JobFailed. The net that a former
// PrepareJob built for the same job and model may serve again.
struct PrepareJob { WelcomeMessage welcome; };
struct StartRun { TrainMessage order; WorkerId worker; };  // answer: RunDone or RunFailed
// After the run under way, if one is. One answer: StateSaved.
struct SaveState { SaveStateMessage order; };
// Whether the job that a master of this term admitted to is over. One answer: EndLookedFor.
struct LookForEnd { std::uint64_t term; };
// Of the run under way, or of the last one: nobody hears of it, nor of what it has put: that is
// erased.
struct CancelRun {};
struct Note { bool warning; std::string text; };
struct Exit { std::optional<Error> error; };
}  // namespace worker_command
using WorkerCommand =
    std::variant<worker_command::Connect, worker_command::SendHello, worker_command::SendReady,
                 worker_command::SendTrained, worker_command::SendLeave, worker_command::SendBeat,
                 worker_command::SendStateSaved, worker_command::PrepareJob,
                 worker_command::StartRun, worker_command::SaveState, worker_command::LookForEnd,
                 worker_command::CancelRun, worker_command::Note, worker_command::Exit>;
using WorkerCommands = std::vector<WorkerCommand>;

// A worker's decisions: connecting with back-off (kReconnectFirst..kReconnectMax, jittered), the
// handshake, one run at a time, leaving. One that was admitted and has lost its master looks in the
// store whether the job is over. Pure, like MasterSession.
class WorkerSession {
 public:
  explicit WorkerSession(WorkerConfig config);
  ~WorkerSession();
  // The first event must be a Tick; it gives the first Connect.
  WorkerCommands on(const WorkerEvent& event);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace speedo
