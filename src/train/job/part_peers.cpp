#include "train/job/part_peers.hpp"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/parse_number.hpp"

namespace speedo {

// Orders go by the shell, as all that a master sends. An answer without a sink was not asked for.
class PartPeers::Link : public PartLink {
 public:
  Link(PeerId peer, std::function<void(PartTold)> notice)
      : peer_(peer), notice_(std::move(notice)) {}

  void tell(const PartOrder& order) override { notice_({peer_, order, {}}); }
  void dismiss(const std::string& reason) override { notice_({peer_, std::nullopt, reason}); }
  void answer_to(PartSink sink) override {
    const std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
    if (lost_) sink_(part_answer::Lost{*lost_});
  }
  void take(PartAnswer answer) {
    const std::lock_guard lock(mutex_);
    if (const auto* const lost = std::get_if<part_answer::Lost>(&answer)) lost_ = lost->reason;
    if (sink_) sink_(std::move(answer));
  }

 private:
  const PeerId peer_;
  const std::function<void(PartTold)> notice_;
  std::mutex mutex_;
  PartSink sink_;                    // guarded by mutex_
  std::optional<std::string> lost_;  // guarded by mutex_
};

namespace {

bool names_part(const HelloMessage& message) {
  return message.device.find(':') != std::string::npos;
}

}  // namespace

bool PartPeers::is_part(const HelloMessage& message) {
  const std::string_view device = message.device;
  const std::string_view kind = kPartDevice;
  return device.starts_with(kind) && (device.size() == kind.size() || device[kind.size()] == ':');
}

// The one that it names, else the first that nobody has.
std::optional<std::uint64_t> PartPeers::choose(const HelloMessage& message,
                                               std::size_t parts) const {
  const std::string_view device = message.device;
  if (names_part(message)) {
    const auto named = parse_number<std::uint64_t>(device.substr(device.find(':') + 1));
    if (named && *named > 0 && *named <= parts) return *named;
    return std::nullopt;
  }
  for (std::uint64_t part = 1; part <= parts; ++part) {
    bool is_taken = false;
    for (const auto& [id, peer] : peers_) is_taken = is_taken || peer.part == part;
    if (!is_taken) return part;
  }
  return std::nullopt;
}

void PartPeers::greet(PeerId id, const HelloMessage& message,
                      const MasterWork::PartTerms* terms) {
  // Whoever greets again has forgotten what it was told before.
  lose(id, "it has come again");
  const auto refuse = [&](ErrorCode code, const std::string& reason) {
    ways_.warn("refused: " + reason);
    ways_.refuse(id, {static_cast<std::uint32_t>(code), reason});
  };
  const std::string name = clip_text(message.name);
  if (message.protocol != kProtocolVersion) {
    return refuse(ErrorCode::kMismatch,
                  fmt::format("{} speaks protocol {}, this master speaks {}; install the same "
                              "version of SpeeDO on both",
                              name, message.protocol, kProtocolVersion));
  }
  if (terms == nullptr) {
    return refuse(ErrorCode::kMismatch,
                  fmt::format("{} would merge a shard, and this job is merged by its master: give "
                              "that --shards, or leave out --shard here",
                              name));
  }
  const auto part = choose(message, terms->parts);
  if (!part) {
    if (!names_part(message)) {
      // One of them may be gone without a word: that shows after --worker-timeout.
      return refuse(ErrorCode::kUnavailable,
                    fmt::format("each of the {} shards of this job has its merger", terms->parts));
    }
    return refuse(ErrorCode::kMismatch,
                  fmt::format("{} has --{}, and this job has {} shards, one a server of --redis",
                              name, clip_text(message.device), terms->parts));
  }
  greeted_ += 1;
  peers_[id] = {.name = name,
                .part = *part,
                .named_it = names_part(message),
                .number = greeted_,
                .link = {},
                .reader = {}};
  WelcomeMessage welcome = terms->welcome;
  welcome.worker = greeted_;
  welcome.part = *part;
  ways_.welcome(id, welcome);
}

// Ready messages may come late, of one that is gone: who greeted last has the part.
bool PartPeers::has_successor(const Peer& peer) const {
  return std::ranges::any_of(peers_, [&](const auto& each) {
    const Peer& other = each.second;
    return other.part == peer.part && other.number > peer.number && other.link;
  });
}

// It asks again until it gets an order.
void PartPeers::take(PeerId from, const ReadyMessage& message,
                     const MasterWork::PartTerms& terms) {
  Peer& peer = peers_.at(from);
  if (peer.link) return;
  if (message.model_high != terms.welcome.model_high ||
      message.model_low != terms.welcome.model_low) {
    peers_.erase(from);
    ways_.refuse(from, {static_cast<std::uint32_t>(ErrorCode::kMismatch),
                        "the store has the layout of another model"});
    return;
  }
  if (has_successor(peer)) return send({from, std::nullopt, kPartTaken});
  peer.link = std::make_shared<Link>(from, ways_.notice);
  terms.desk->offer({.part = peer.part - 1, .name = peer.name, .link = peer.link});
}

void PartPeers::take(PeerId from, const PartAnswerMessage& message) {
  const auto found = peers_.find(from);
  // Before it was ready it answers an earlier master.
  if (found == peers_.end() || !found->second.link) return;
  Peer& peer = found->second;
  auto answer = peer.reader.take(message);
  if (!answer) {
    peer.link->take(part_answer::Lost{answer.error().message});
  } else if (*answer) {
    peer.link->take(std::move(**answer));
  }
}

void PartPeers::send(const PartTold& told) {
  const auto found = peers_.find(told.peer);
  if (found == peers_.end()) return;
  if (!told.order) {
    // One that takes any part may find another when it comes again.
    const ErrorCode code = found->second.named_it ? ErrorCode::kMismatch : ErrorCode::kUnavailable;
    peers_.erase(found);
    ways_.refuse(told.peer, {static_cast<std::uint32_t>(code), told.dismissal});
    return;
  }
  for (PartOrderMessage& message : to_messages(*told.order)) {
    ways_.order(told.peer, std::move(message));
  }
}

bool PartPeers::lose(PeerId id, const std::string& reason) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return false;
  if (found->second.link) found->second.link->take(part_answer::Lost{reason});
  peers_.erase(found);
  return true;
}

}  // namespace speedo
