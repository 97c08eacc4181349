#include "gate/admission.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

#include "gate/key_material.hpp"

namespace speedo {
namespace {

// The first bytes of CAF itself, which masters before the gate sent to whoever came.
constexpr std::string_view kOldGreeting("\0\0\0\0", 4);

class ListeningAdmission final : public Admission {
 public:
  ListeningAdmission(std::shared_ptr<const GateCredentials> credentials, Greeting greeting)
      : Admission(std::move(credentials)),
        greeting_(std::move(greeting)),
        sent_(encode(greeting_)) {}

  const std::string& sent() const { return sent_; }

 private:
  bool go_on(std::string& out) override {
    return step_ == Step::kPreamble ? take_preamble(out) : take_handshake(out);
  }
  void end_early() override {
    fail({ErrorCode::kUnavailable, step_ == Step::kPreamble ? "went without a word"
                                                            : "went before it was let in"});
  }

  bool take_preamble(std::string& out);
  bool take_handshake(std::string& out);

  const Greeting greeting_;
  const std::string sent_;
};

bool ListeningAdmission::take_preamble(std::string& out) {
  if (held_.size() < kPreambleBytes) return false;
  const std::string bytes = held_.substr(0, kPreambleBytes);
  held_.erase(0, kPreambleBytes);
  PreambleVerdict verdict = judge_preamble(bytes, greeting_, sent_, credentials_->keys());
  if (!verdict.is_preamble) {
    fail({ErrorCode::kRefused, "speaks another protocol"});
    return false;
  }
  peer_.role = verdict.preamble.role;
  peer_.key = verdict.key;
  if (verdict.refusal != Refusal::kNone) {
    refuse(verdict.refusal, out);
    return false;
  }
  auto channel = credentials_->make_channel(GateSide::kListens, verdict.key, sent_ + bytes, "");
  if (!channel) {
    fail(channel.error());
    return false;
  }
  channel_ = std::move(channel).value();
  step_ = Step::kHandshake;
  return true;
}

bool ListeningAdmission::take_handshake(std::string& out) {
  if (!feed_channel(out) || !channel_->is_ready()) return false;
  const ChannelPeer shown = channel_->peer();
  Refusal refusal = Refusal::kNone;
  if (credentials_->mode() == GateMode::kCertificates && !shown.is_worker) {
    refusal = Refusal::kRole;
  }
  peer_.name = shown.name;
  const auto answer = static_cast<char>(refusal == Refusal::kNone
                                            ? kAdmittedByte
                                            : static_cast<std::uint8_t>(refusal));
  if (auto sent = channel_->send(std::string_view(&answer, 1), out); !sent) {
    fail(sent.error());
  } else if (refusal != Refusal::kNone) {
    refusal_ = refusal;
    channel_->end(out);
    fail({ErrorCode::kRefused, fmt::format("'{}' has {}", shown.name, name_of(refusal))});
  } else {
    step_ = Step::kAdmitted;
  }
  return false;
}

class CallingAdmission final : public Admission {
 public:
  CallingAdmission(std::shared_ptr<const GateCredentials> credentials, Call call,
                   std::string nonce)
      : Admission(std::move(credentials)), call_(std::move(call)), nonce_(std::move(nonce)) {}

 private:
  bool go_on(std::string& out) override {
    return step_ == Step::kPreamble ? take_greeting(out) : take_answer(out);
  }
  void end_early() override;

  bool take_greeting(std::string& out);
  std::optional<Error> check(const Greeting& greeting) const;
  bool take_answer(std::string& out);
  void take_consent();

  const Call call_;
  const std::string nonce_;
  bool answered_ = false;  // the peer said something after the preamble
};

std::optional<Error> CallingAdmission::check(const Greeting& greeting) const {
  if (greeting.version != kGateVersion) return error_of(Refusal::kGateVersion);
  if (greeting.protocol != call_.protocol) {
    Error error = error_of(Refusal::kProtocol);
    error.message += fmt::format(" (it speaks {}, this is {})", greeting.protocol, call_.protocol);
    return error;
  }
  if (greeting.mode == credentials_->mode()) return std::nullopt;
  if (greeting.mode != GateMode::kOpen) return error_of(Refusal::kMode);
  // Whoever stands between could say so, and read along.
  return Error{ErrorCode::kRefused,
               fmt::format("it lets everybody in, without {}, which was given here: start it with "
                           "the same, or leave it out here",
                           name_of(credentials_->mode()))};
}

bool CallingAdmission::take_greeting(std::string& out) {
  if (held_.size() < kGreetingBytes) return false;
  const std::string bytes = held_.substr(0, kGreetingBytes);
  held_.erase(0, kGreetingBytes);
  const auto greeting = decode_greeting(bytes);
  if (!greeting) {
    if (bytes.starts_with(kOldGreeting)) {
      fail({ErrorCode::kMismatch, "an older SpeeDO, without a gate, listens there; use the same "
                                  "version for master and workers"});
    } else {
      fail({ErrorCode::kUnavailable, "something else than a speedo-master listens there"});
    }
    return false;
  }
  if (auto wrong = check(*greeting)) {
    fail(std::move(*wrong));
    return false;
  }
  const PreambleKey& key = credentials_->keys().front();
  const std::string preamble = encode(Preamble{.version = kGateVersion,
                                               .mode = credentials_->mode(),
                                               .role = call_.role,
                                               .protocol = call_.protocol,
                                               .nonce = nonce_,
                                               .key_id = key.id},
                                      bytes, key);
  auto channel =
      credentials_->make_channel(GateSide::kCalls, 0, bytes + preamble, call_.host);
  if (!channel) {
    fail(channel.error());
    return false;
  }
  channel_ = std::move(channel).value();
  out += preamble;
  step_ = Step::kHandshake;
  if (auto begun = channel_->begin(out); !begun) {
    fail(begun.error());
    return false;
  }
  return true;
}

bool CallingAdmission::take_answer(std::string& out) {
  if (held_.empty()) return false;
  const auto first = static_cast<std::uint8_t>(held_[0]);
  const bool refused = !answered_ && first <= kRefusalByteMax &&
                       !(credentials_->mode() == GateMode::kOpen && first == kAdmittedByte);
  answered_ = true;
  if (refused) {
    fail(error_of(static_cast<Refusal>(first)));
    return false;
  }
  if (!feed_channel(out) || !channel_->is_ready()) return false;
  const ChannelPeer shown = channel_->peer();
  if (credentials_->mode() == GateMode::kCertificates) {
    if (!shown.is_master) {
      fail({ErrorCode::kRefused,
            fmt::format("the certificate of '{}' is not a master's", shown.name)});
      return false;
    }
    if (!shown.name_fault.empty()) {
      fail({ErrorCode::kRefused, shown.name_fault});
      return false;
    }
  }
  peer_.name = shown.name;
  take_consent();
  return false;
}

void CallingAdmission::take_consent() {
  if (plain_.empty()) return;
  const auto answer = static_cast<std::uint8_t>(plain_[0]);
  plain_.erase(0, 1);
  if (answer == kAdmittedByte) {
    step_ = Step::kAdmitted;
  } else {
    fail(error_of(static_cast<Refusal>(answer)));
  }
}

void CallingAdmission::end_early() {
  fail({ErrorCode::kUnavailable, step_ == Step::kPreamble
                                     ? "closed the connection; is it a speedo-master?"
                                     : "closed the connection before it let us in"});
}

}  // namespace

Result<std::unique_ptr<Admission>> Admission::listen(
    std::shared_ptr<const GateCredentials> credentials, std::uint32_t protocol,
    std::string& out) {
  Greeting greeting{
      .version = kGateVersion, .mode = credentials->mode(), .protocol = protocol, .nonce = {}};
  SPEEDO_ASSIGN(greeting.nonce, random_bytes(kNonceBytes));
  auto made = std::make_unique<ListeningAdmission>(std::move(credentials), std::move(greeting));
  out += made->sent();
  return std::unique_ptr<Admission>(std::move(made));
}

Result<std::unique_ptr<Admission>> Admission::call(
    std::shared_ptr<const GateCredentials> credentials, Call call) {
  SPEEDO_ASSIGN(std::string nonce, random_bytes(kNonceBytes));
  return std::unique_ptr<Admission>(std::make_unique<CallingAdmission>(
      std::move(credentials), std::move(call), std::move(nonce)));
}

void Admission::receive(std::string_view bytes, std::string& out) {
  SPEEDO_ASSERT(step_ != Step::kAdmitted);
  SPEEDO_ASSERT(step_ != Step::kEnded);
  held_ += bytes;
  while (go_on(out)) {
  }
}

void Admission::end() {
  SPEEDO_ASSERT(step_ != Step::kAdmitted);
  SPEEDO_ASSERT(step_ != Step::kEnded);
  end_early();
}

void Admission::fail(Error error) {
  error_ = std::move(error);
  step_ = Step::kEnded;
}

void Admission::refuse(Refusal refusal, std::string& out) {
  refusal_ = refusal;
  out += static_cast<char>(refusal);
  fail({ErrorCode::kRefused, fmt::format("has {}", name_of(refusal))});
}

bool Admission::feed_channel(std::string& out) {
  const std::string bytes = std::exchange(held_, {});
  auto taken = channel_->receive(bytes, plain_, out);
  if (taken) return true;
  if (taken.error().code == ErrorCode::kRefused) refusal_ = Refusal::kCertificate;
  fail(std::move(taken).error());
  return false;
}

}  // namespace speedo
