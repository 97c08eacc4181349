#include "gate/gate_link.hpp"

#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

constexpr std::size_t kOwnHeadBytes = BaspFilter::kHeaderBytes + BaspFilter::kNodeBytes;

}  // namespace

GateLink::GateLink(std::unique_ptr<Admission> admission, std::string first, RulesOf rules_of,
                   Instant now)
    : admission_(std::move(admission)),
      rules_of_(std::move(rules_of)),
      to_network_(std::move(first)),
      deadline_(now + kAdmissionPatience) {}

void GateLink::from_network(std::string_view bytes, Instant now) {
  if (!bytes.empty()) heard_ = now;
  if (state_ == State::kAdmission) return admit(bytes, now);
  if (state_ != State::kOpen) return;
  std::string plain;
  if (auto taken = channel_->receive(bytes, plain, to_network_); !taken) {
    return cut(std::move(taken).error(), now);
  }
  pass(plain, now);
}

void GateLink::admit(std::string_view bytes, Instant now) {
  const Admission::Step before = admission_->step();
  admission_->receive(bytes, to_network_);
  if (admission_->step() == Admission::Step::kEnded) {
    return bid_farewell(admission_->error(), now);
  }
  if (admission_->step() != before) deadline_ = now + kAdmissionPatience;
  if (admission_->step() == Admission::Step::kAdmitted) open(now);
}

void GateLink::open(Instant now) {
  state_ = State::kOpen;
  channel_ = admission_->take_channel();
  filter_ = std::make_unique<BaspFilter>(rules_of_(admission_->peer()));
  pass(admission_->take_rest(), now);
}

void GateLink::pass(std::string_view plain, Instant now) {
  if (plain.empty()) return;
  if (auto passed = filter_->pass(plain, to_local_); !passed) {
    return cut(std::move(passed).error(), now);
  }
  if (filter_->has_greeted()) deadline_.reset();
}

void GateLink::from_local(std::string_view bytes, Instant now) {
  if (state_ != State::kOpen) return;
  if (own_head_.size() < kOwnHeadBytes) {
    own_head_ += bytes.substr(0, kOwnHeadBytes - own_head_.size());
    if (own_head_.size() == kOwnHeadBytes) {
      filter_->set_own_node(own_head_.substr(BaspFilter::kHeaderBytes));
    }
  }
  if (auto sent = channel_->send(bytes, to_network_); !sent) {
    bid_farewell(std::move(sent).error(), now);
  }
}

void GateLink::network_ended() {
  if (state_ == State::kAdmission) {
    admission_->end();
    fault_ = admission_->error();
  }
  to_network_.clear();
  state_ = State::kEnded;
}

void GateLink::local_ended(Instant now) {
  if (state_ == State::kOpen) {
    channel_->end(to_network_);
    bid_farewell(std::nullopt, now);
  }
}

// Nothing of what a peer said reaches CAF after its first wrong word.
void GateLink::cut(Error fault, Instant now) {
  cut_ = true;
  to_local_.clear();
  bid_farewell(std::move(fault), now);
}

void GateLink::bid_farewell(std::optional<Error> fault, Instant now) {
  fault_ = std::move(fault);
  state_ = State::kFarewell;
  deadline_ = now + kGateFarewell;
}

void GateLink::pass_time(Instant now) {
  if (!deadline_ || now < *deadline_) return;
  deadline_.reset();
  if (state_ == State::kAdmission) {
    fault_ = Error{ErrorCode::kTimeout,
                   fmt::format("took longer than {} s to {}", kAdmissionPatience.count() / 1000,
                               step() == Admission::Step::kPreamble ? "say who it is"
                                                                    : "prove who it is")};
  } else if (state_ == State::kOpen) {
    cut_ = true;
    fault_ = Error{ErrorCode::kTimeout, "was let in and said nothing"};
  }
  state_ = State::kEnded;
}

}  // namespace speedo
