#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <speedo/train/master_session.hpp>
#include <speedo/train/messages.hpp>

#include "train/job/master_work.hpp"
#include "train/parts/part_messages.hpp"

namespace speedo {

// What the link to the merger of a part was told; without an order: to go, and why.
struct PartTold {
  PeerId peer;
  std::optional<PartOrder> order;
  std::string dismissal;
};

// The mergers of parts that have come to a master: who they are, which part each has, and the way
// of orders and answers. Used by the master's shell alone, which numbers its peers; links that it
// hands out may be used on any thread.
class PartPeers {
 public:
  // What this sends to others, as the shell does; whoever is refused is gone then. `notice`: from
  // any thread, to the shell.
  struct Ways {
    std::function<void(PeerId, WelcomeMessage)> welcome;
    std::function<void(PeerId, RefusedMessage)> refuse;
    std::function<void(PeerId, PartOrderMessage)> order;
    std::function<void(PartTold)> notice;
    std::function<void(std::string warning)> warn;
  };
  explicit PartPeers(Ways ways) : ways_(std::move(ways)) {}

  static bool is_part(const HelloMessage& message);
  // `terms`: null if the job is not merged in parts.
  void greet(PeerId peer, const HelloMessage& message, const MasterWork::PartTerms* terms);
  bool has(PeerId peer) const { return peers_.contains(peer); }
  void take(PeerId from, const ReadyMessage& message, const MasterWork::PartTerms& terms);
  void take(PeerId from, const PartAnswerMessage& message);
  // What a link was told goes out now.
  void send(const PartTold& told);
  // False: it was none of these.
  bool lose(PeerId peer, const std::string& reason);
  template <class Each>
  void for_each(Each each) const {
    for (const auto& [id, peer] : peers_) each(id);
  }

 private:
  class Link;
  struct Peer {
    std::string name;
    std::uint64_t part = 0;       // counted from 1
    bool named_it = false;        // no other will do
    std::uint64_t number = 0;     // in the order of greetings
    std::shared_ptr<Link> link;   // null until it is ready
    PartAnswerReader reader;
  };
  std::optional<std::uint64_t> choose(const HelloMessage& message, std::size_t parts) const;
  bool has_successor(const Peer& peer) const;

  const Ways ways_;
  std::map<PeerId, Peer> peers_;
  std::uint64_t greeted_ = 0;
};

}  // namespace speedo
