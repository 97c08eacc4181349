#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <speedo/train/messages.hpp>

#include "actors/compat.hpp"
#include "actors/local_messages.hpp"
#include "train/job/master_work.hpp"
#include "train/parts/part_messages.hpp"

namespace speedo {

// The mergers of parts that have come to a master: who they are, which part each has, and the way
// of orders and answers. Used by the master's actor alone; links that it hands out may be used on
// any thread.
class PartPeers {
 public:
  // What this sends to others, as the actor does. `notice`: from any thread, to the actor.
  struct Ways {
    std::function<void(const caf::actor&, WelcomeMessage)> welcome;
    std::function<void(const caf::actor&, RefusedMessage)> refuse;
    std::function<void(const caf::actor&, PartOrderMessage)> order;
    std::function<void(PartTold)> notice;
  };
  explicit PartPeers(Ways ways) : ways_(std::move(ways)) {}

  static bool is_part(const HelloMessage& message);
  // `terms`: null if the job is not merged in parts. True: it stays, and is to be monitored.
  bool greet(const caf::actor& actor, const HelloMessage& message,
             const MasterWork::PartTerms* terms);
  bool has(const caf::actor_addr& address) const { return peers_.contains(address); }
  void take(const caf::actor_addr& from, const ReadyMessage& message,
            const MasterWork::PartTerms& terms);
  void take(const caf::actor_addr& from, const PartAnswerMessage& message);
  // What a link was told goes out now.
  void send(const PartTold& told);
  void lose(const caf::actor_addr& address, const std::string& reason);
  bool empty() const { return peers_.empty(); }
  template <class Each>
  void for_each(Each each) const {
    for (const auto& [address, peer] : peers_) each(peer.actor);
  }

 private:
  class Link;
  struct Peer {
    caf::actor actor;
    std::string name;
    std::uint64_t part = 0;       // counted from 1
    std::shared_ptr<Link> link;   // null until it is ready
    PartAnswerReader reader;
  };
  std::optional<std::uint64_t> choose(const HelloMessage& message, std::size_t parts) const;

  const Ways ways_;
  std::map<caf::actor_addr, Peer> peers_;
  std::uint64_t greeted_ = 0;
};

}  // namespace speedo
