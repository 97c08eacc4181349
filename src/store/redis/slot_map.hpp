#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "store/redis/key_slot.hpp"
#include "store/redis/redis_session.hpp"

namespace speedo {

// Which primary of a Redis Cluster has which slot. Thread safety: as a value.
class SlotMap {
 public:
  SlotMap() { owners_.fill(kNobody); }

  // Null: no node is known to have it.
  const RedisAddress* owner(std::uint16_t slot) const;
  void set(std::uint16_t slot, const RedisAddress& owner);
  // Those that have slots, each once.
  std::vector<RedisAddress> primaries() const;
  // Slots that nobody has, as "100-200 (101 of 16384)", with the first such range; empty: none.
  std::string lacks() const;
  bool operator==(const SlotMap& other) const;

 private:
  static constexpr std::int16_t kNobody = -1;

  std::vector<RedisAddress> nodes_;
  std::array<std::int16_t, kKeySlots> owners_{};  // places in nodes_
};

// Of a reply to CLUSTER SLOTS; nothing of one in another form. A node without a host is at the one
// that was asked.
std::optional<SlotMap> slots_of(const redisReply& reply, const RedisAddress& asked);

// What a node knows of its cluster, by CLUSTER SLOTS. Errors: of the connection, kConfig (not in
// cluster mode), kInternal.
Result<SlotMap> ask_slots(RedisSession& session, const RedisAddress& asked);

// A reply that sends an operation to another node of the cluster, or says that it comes too early.
struct RedisRedirect {
  enum class Kind {
    kMoved,      // the slot is `node`'s now
    kAsk,        // this once, at `node`
    kTryAgain,   // the slot is being moved, and has some of the keys here, some there
    kDown,       // the cluster serves nothing, or not this slot
  };
  Kind kind = Kind::kDown;
  std::uint16_t slot = 0;  // kMoved, kAsk
  RedisAddress node;       // kMoved, kAsk
};

// Of an error reply without its '-', of the node at `asked`; nothing of any other error.
std::optional<RedisRedirect> redirect_of(std::string_view reply, const RedisAddress& asked);

}  // namespace speedo
