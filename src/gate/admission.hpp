#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

#include "gate/channel.hpp"
#include "gate/credentials.hpp"
#include "gate/preamble.hpp"

namespace speedo {

// The peer that was let in.
struct AdmittedPeer {
  GateRole role = GateRole::kMaster;
  std::string name;      // by its certificate; empty without
  std::size_t key = 0;   // the one that it proved, of GateCredentials::keys()
};

// How two gates come to trust each other, as one of them: greeting, preamble, the channel's
// handshake, and one byte of consent in the channel from the side that listens. Pure: bytes in,
// bytes out, no clock and no socket.
//
//   listens:  greeting ->            <- preamble    handshake <->   kAdmittedByte ->
//   calls:             <- greeting   preamble ->    handshake <->                 <- kAdmittedByte
//
// A side that is refused is told by one byte, a Refusal, in place of what it waits for; a stranger,
// who sends no preamble, is told nothing.
// Thread safety: one thread.
class Admission {
 public:
  enum class Step {
    kPreamble,   // nothing is proved yet
    kHandshake,  // the preamble is
    kAdmitted,
    kEnded,      // error() says why; the peer is sent what is in `out` before the end
  };

  // `protocol`: of what is spoken behind the gate. Adds the greeting to `out`. Error: kInternal.
  static Result<std::unique_ptr<Admission>> listen(
      std::shared_ptr<const GateCredentials> credentials, std::uint32_t protocol,
      std::string& out);
  struct Call {
    std::uint32_t protocol = 0;
    GateRole role = GateRole::kWorker;  // ours
    std::string host;                   // that is called
  };
  static Result<std::unique_ptr<Admission>> call(
      std::shared_ptr<const GateCredentials> credentials, Call call);
  virtual ~Admission() = default;

  // What came next. Requires: step() is neither kAdmitted nor kEnded.
  void receive(std::string_view bytes, std::string& out);
  // No more will come. Requires: as above.
  void end();

  Step step() const { return step_; }
  // Requires: kEnded. kRefused and kMismatch if another attempt would end so, too.
  const Error& error() const { return *error_; }
  // Of the side that listens: the reason; kNone if the peer was a stranger, or went.
  Refusal refusal() const { return refusal_; }

  // Requires: kAdmitted; once. What follows in the channel, and what has already come of it.
  std::unique_ptr<Channel> take_channel() { return std::move(channel_); }
  std::string take_rest() { return std::move(plain_); }
  const AdmittedPeer& peer() const { return peer_; }

 protected:
  explicit Admission(std::shared_ptr<const GateCredentials> credentials)
      : credentials_(std::move(credentials)) {}

  // Once `held_` has grown; true if it may go on at once with what is left.
  virtual bool go_on(std::string& out) = 0;
  virtual void end_early() = 0;

  void fail(Error error);
  void refuse(Refusal refusal, std::string& out);
  // Gives the channel all that is held; false if it broke.
  bool feed_channel(std::string& out);

  const std::shared_ptr<const GateCredentials> credentials_;
  Step step_ = Step::kPreamble;
  std::optional<Error> error_;
  Refusal refusal_ = Refusal::kNone;
  std::unique_ptr<Channel> channel_;
  AdmittedPeer peer_;
  std::string held_;   // has come and was not taken
  std::string plain_;  // has come in the channel
};

}  // namespace speedo
