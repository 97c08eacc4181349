// Connecting and handshake.

#include <speedo/train/worker_session.hpp>

#include <algorithm>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "train/session/worker_session_impl.hpp"

namespace speedo {

WorkerSession::WorkerSession(WorkerConfig config)
    : impl_(std::make_unique<Impl>(std::move(config))) {}

WorkerSession::~WorkerSession() = default;

WorkerCommands WorkerSession::on(const WorkerEvent& event) {
  if (impl_->state_ == Impl::State::kExited) return {};
  std::visit([this](const auto& e) { impl_->handle(e); }, event);
  return std::exchange(impl_->out_, {});
}

// The name takes part, so that the workers of one process do not connect in step.
WorkerSession::Impl::Impl(WorkerConfig config_in)
    : config_(std::move(config_in)),
      random_(Random::derive(config_.seed, {digest_of(config_.name).low})) {}

void WorkerSession::Impl::handle(const worker_event::Tick& event) {
  now_ = state_ == State::kNew ? event.now : std::max(event.now, now_);
  if (state_ == State::kNew) {
    alone_since_ = now_;
    return connect();
  }
  check_connect_timeout();
  if (state_ == State::kBackingOff && now_ >= retry_at_) connect();
  check_answers();
  beat(event.progress);
}

// What was sent may be lost, or its receiver may have forgotten it.
void WorkerSession::Impl::check_answers() {
  if (now_ - asked_at_ < kAnswerTimeout) return;
  if (state_ == State::kGreeting) {
    back_off(fmt::format("the master has not answered for {} s",
                         std::chrono::duration_cast<std::chrono::seconds>(kAnswerTimeout).count()));
  } else if (state_ == State::kReady && !last_ordered_) {
    send_ready();
  }
}

void WorkerSession::Impl::beat(std::uint64_t progress) {
  if (!id_ || now_ - beaten_at_ < kBeatInterval) return;
  beaten_at_ = now_;
  out_.emplace_back(
      worker_command::SendBeat{{id_->value, run_ ? run_->value : kNoRun, progress}});
}

void WorkerSession::Impl::check_connect_timeout() {
  if (config_.connect_timeout.count() == 0 || !alone_since_ || id_) return;
  if (now_ - *alone_since_ < config_.connect_timeout) return;
  const std::string failure = last_failure_.empty() ? "no answer" : last_failure_;
  exit(Error{ErrorCode::kUnavailable,
             fmt::format("no master admitted this worker at {} within {} s ({}); check that "
                         "speedo-master runs there and that address and port are right",
                         config_.master, config_.connect_timeout.count(), failure)});
}

void WorkerSession::Impl::connect() {
  state_ = State::kConnecting;
  out_.emplace_back(worker_command::Connect{});
}

void WorkerSession::Impl::back_off(const std::string& reason) {
  const double wait_s = wait_to_connect(reason);
  is_quiet_ = false;
  note(true, "{}; attempt {} to reach the master at {} in {:.1f} s", last_failure_, attempts_ + 1,
       config_.master, wait_s);
  look_for_end();
}

// The master is there, and the store fails this worker again and again.
void WorkerSession::Impl::join_again(const std::string& reason) {
  const double wait_s = wait_to_connect(reason);
  is_quiet_ = !store_notes_.is_due(now_);
  if (!is_quiet_) {
    note(true, "{}; this worker joins its master again, in {:.1f} s and until the store is back, "
               "without what it had alone", last_failure_, wait_s);
  }
  look_for_end();
}

// Between half and the whole of kReconnectFirst * 2^attempts, up to a maximum, in seconds: workers
// that lost the master together do not come back together.
double WorkerSession::Impl::wait_to_connect(const std::string& reason) {
  end_incarnation();
  if (!alone_since_) alone_since_ = now_;
  last_failure_ = clip_text(reason);
  constexpr unsigned kDoublingsMax = 16;
  const Instant whole =
      std::min<Instant>(kReconnectFirst * (1U << std::min(attempts_, kDoublingsMax)),
                        term_ ? kReconnectLost : kReconnectMax);
  const auto half = static_cast<std::uint64_t>(whole.count()) / 2;
  const Instant wait{static_cast<Instant::rep>(half + random_.below(half + 1))};
  attempts_ += 1;
  retry_at_ = now_ + wait;
  state_ = State::kBackingOff;
  return std::chrono::duration<double>(wait).count();
}

// The master may have ended while this worker was away.
void WorkerSession::Impl::look_for_end() {
  if (!term_ || looking_for_end_) return;
  looking_for_end_ = true;
  out_.emplace_back(worker_command::LookForEnd{*term_});
}

void WorkerSession::Impl::handle(const worker_event::EndLookedFor& event) {
  SPEEDO_ASSERT(looking_for_end_);
  looking_for_end_ = false;
  if (!event.job_is_over || greeted()) return;
  note(false, "the store says that the job is over");
  take_back();
  exit(std::nullopt);
}

void WorkerSession::Impl::handle(const worker_event::Connected& /*event*/) {
  if (state_ != State::kConnecting) return;
  state_ = State::kGreeting;
  asked_at_ = now_;
  out_.emplace_back(worker_command::SendHello{{kProtocolVersion, clip_text(config_.name),
                                               clip_text(config_.device), config_.uuid_high,
                                               config_.uuid_low}});
}

void WorkerSession::Impl::handle(const worker_event::ConnectFailed& event) {
  if (state_ != State::kConnecting) return;
  if (!event.for_good) return back_off(event.reason);
  exit(Error{*event.for_good, clip_text(event.reason)});
}

void WorkerSession::Impl::handle(const worker_event::MasterLost& event) {
  if (!greeted()) return;
  if (id_) attempts_ = 0;
  back_off("connection lost: " + event.reason);
}

// The master may welcome a worker twice, if a Hello reached it twice: the later incarnation counts.
void WorkerSession::Impl::handle(const worker_event::Welcome& event) {
  const WorkerId id{event.message.worker};
  if (!greeted() || (id_ && id <= *id_)) return;
  end_incarnation();
  id_ = id;
  term_ = event.message.term;
  beaten_at_ = now_;
  state_ = State::kPreparing;
  preparations_ += 1;
  if (!is_quiet_) note(false, "admitted by {} as worker {}", config_.master, id.value);
  out_.emplace_back(worker_command::PrepareJob{event.message});
}

void WorkerSession::Impl::handle(const worker_event::Refused& event) {
  if (!greeted()) return;
  const ErrorCode code = error_code_of(event.message.code);
  const std::string reason = "the master refused this worker: " + event.message.reason;
  if (is_transient(code)) return back_off(reason);
  exit(Error{code, clip_text(reason)});
}

// Whether the answer just received is that of the PrepareJob that counts. Those of earlier
// incarnations are answered as well, and before it.
bool WorkerSession::Impl::last_preparation() {
  SPEEDO_ASSERT(preparations_ > 0);
  preparations_ -= 1;
  return preparations_ == 0 && state_ == State::kPreparing;
}

// The master compares the fingerprints: only it can name both sides to both of them.
void WorkerSession::Impl::handle(const worker_event::JobPrepared& event) {
  if (!last_preparation()) return;
  state_ = State::kReady;
  alone_since_.reset();
  model_ = event.model;
  send_ready();
}

void WorkerSession::Impl::send_ready() {
  asked_at_ = now_;
  out_.emplace_back(worker_command::SendReady{{id_->value, model_.high, model_.low}});
}

// With the store out of reach it may be back for the next incarnation. Bad data stay bad.
void WorkerSession::Impl::handle(const worker_event::JobFailed& event) {
  if (!last_preparation()) return;
  leave(static_cast<std::uint32_t>(event.error.code), event.error.message);
  if (!is_transient(event.error.code)) return exit(event.error);
  join_again("the job cannot be prepared: " + event.error.message);
}

}  // namespace speedo
