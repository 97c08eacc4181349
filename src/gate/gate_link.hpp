#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

#include "gate/admission.hpp"
#include "gate/basp_filter.hpp"

namespace speedo {

// How long a peer may take for each step of its admission, for CAF's handshake after it, and to
// take what it is sent at the end.
inline constexpr std::chrono::milliseconds kAdmissionPatience{5000};
inline constexpr std::chrono::milliseconds kGateFarewell{1000};
// A peer that for so long takes less than there is for it is given up; who for kGateRelief has less
// to take than kGateBufferBytes has caught up.
inline constexpr std::chrono::seconds kGateStall{30};
inline constexpr std::chrono::seconds kGateRelief{1};
// What is held for one side before the other is not read any more.
inline constexpr std::size_t kGateBufferBytes = std::size_t{64} << 10U;

// One connection of a gate between the network and CAF: admission, protection, filter. Pure: bytes
// in, bytes out, times are told. Whoever owns the two sockets takes what is in the two buffers.
// Thread safety: one thread.
class GateLink {
 public:
  enum class State {
    kAdmission,
    kOpen,
    kFarewell,  // what is in to_network() goes out, then the connection ends
    kEnded,
  };
  // What the peer may say, once it is known who it is.
  using RulesOf = std::function<BaspRules(const AdmittedPeer& peer)>;

  // `first`: to be sent at once.
  GateLink(std::unique_ptr<Admission> admission, std::string first, RulesOf rules_of, Instant now);

  void from_network(std::string_view bytes, Instant now);
  void network_ended();
  void from_local(std::string_view bytes, Instant now);  // Requires: kOpen
  void local_ended(Instant now);
  // At deadline() or later.
  void pass_time(Instant now);
  // Whether a peer that was let in has said nothing for so long.
  bool is_silent(Instant now, std::chrono::milliseconds silence) const {
    return state_ == State::kOpen && now - heard_ >= silence;
  }

  std::string& to_network() { return to_network_; }
  std::string& to_local() { return to_local_; }
  State state() const { return state_; }
  Admission::Step step() const { return admission_->step(); }
  const AdmittedPeer& peer() const { return admission_->peer(); }
  bool was_admitted() const { return step() == Admission::Step::kAdmitted; }
  std::optional<Instant> deadline() const { return deadline_; }

  // Why it ended, if not because one side had enough of it. During admission the error of the
  // Admission; else kCorrupt if the filter cut it, kTimeout, kUnavailable.
  const std::optional<Error>& fault() const { return fault_; }
  Refusal refusal() const { return admission_->refusal(); }
  bool was_cut() const { return cut_; }

 private:
  void admit(std::string_view bytes, Instant now);
  void open(Instant now);
  void pass(std::string_view plain, Instant now);
  void cut(Error fault, Instant now);
  void bid_farewell(std::optional<Error> fault, Instant now);

  std::unique_ptr<Admission> admission_;
  RulesOf rules_of_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<BaspFilter> filter_;
  State state_ = State::kAdmission;
  std::string to_network_, to_local_;
  std::string own_head_;  // the first bytes of CAF here, until they name our node
  std::optional<Instant> deadline_;
  Instant heard_{0};  // when something came last
  std::optional<Error> fault_;
  bool cut_ = false;
};

}  // namespace speedo
