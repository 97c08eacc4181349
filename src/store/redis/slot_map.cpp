#include "store/redis/slot_map.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>

#include <speedo/base/limits.hpp>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

constexpr std::string_view kUnknownHost = "?";

bool is_same(const RedisAddress& a, const RedisAddress& b) {
  return a.host == b.host && a.port == b.port;
}

// What else a node says of itself: names and values in turn.
std::string_view metadata_of(const redisReply& node, std::string_view name) {
  if (node.elements < 4 || node.element[3]->type != REDIS_REPLY_ARRAY) return {};
  const redisReply& list = *node.element[3];
  for (std::size_t i = 0; i + 1 < list.elements; i += 2) {
    if (text_of(*list.element[i]) == name) return text_of(*list.element[i + 1]);
  }
  return {};
}

// Host and port come first. Nothing if it is not known where it is.
std::optional<RedisAddress> node_of(const redisReply& node, const RedisAddress& asked) {
  if (node.type != REDIS_REPLY_ARRAY || node.elements < 2) return std::nullopt;
  std::string_view host = text_of(*node.element[0]);
  // It is to announce a name, and has none.
  const bool is_nameless = host == kUnknownHost;
  if (is_nameless) host = metadata_of(node, "ip");
  const long long port = node.element[1]->integer;
  if ((is_nameless && host.empty()) || port < 1 || port > kPortMax) return std::nullopt;
  RedisAddress address = asked;
  if (!host.empty()) address.host = host;
  address.port = static_cast<int>(port);
  return address;
}

bool is_slot(long long number) { return number >= 0 && number < static_cast<long long>(kKeySlots); }

std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

// HOST:PORT, without brackets about an IPv6 address; no host: the one that was asked.
std::optional<RedisAddress> place_of(std::string_view text, const RedisAddress& asked) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.substr(0, colon) == kUnknownHost) return std::nullopt;
  const auto port = parse_number<int>(text.substr(colon + 1));
  if (!port || *port < 1 || *port > kPortMax) return std::nullopt;
  RedisAddress address = asked;
  if (colon > 0) address.host = text.substr(0, colon);
  address.port = *port;
  return address;
}

}  // namespace

const RedisAddress* SlotMap::owner(std::uint16_t slot) const {
  const std::int16_t place = owners_[slot];
  return place == kNobody ? nullptr : &nodes_[static_cast<std::size_t>(place)];
}

void SlotMap::set(std::uint16_t slot, const RedisAddress& owner) {
  auto found = std::find_if(nodes_.begin(), nodes_.end(),
                            [&](const RedisAddress& each) { return is_same(each, owner); });
  if (found == nodes_.end()) found = nodes_.insert(found, owner);
  owners_[slot] = static_cast<std::int16_t>(found - nodes_.begin());
}

std::vector<RedisAddress> SlotMap::primaries() const {
  std::vector<bool> has_slots(nodes_.size());
  for (const std::int16_t place : owners_) {
    if (place != kNobody) has_slots[static_cast<std::size_t>(place)] = true;
  }
  std::vector<RedisAddress> all;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (has_slots[place]) all.push_back(nodes_[place]);
  }
  return all;
}

std::string SlotMap::lacks() const {
  const auto first = std::find(owners_.begin(), owners_.end(), kNobody);
  if (first == owners_.end()) return "";
  const auto end = std::find_if(first, owners_.end(),
                                [](std::int16_t place) { return place != kNobody; });
  const auto begin_slot = first - owners_.begin(), last_slot = end - owners_.begin() - 1;
  const auto count = std::count(owners_.begin(), owners_.end(), kNobody);
  return std::to_string(begin_slot) +
         (last_slot == begin_slot ? "" : "-" + std::to_string(last_slot)) + " (" +
         std::to_string(count) + " of " + std::to_string(kKeySlots) + " in all)";
}

bool SlotMap::operator==(const SlotMap& other) const {
  for (std::size_t slot = 0; slot < kKeySlots; ++slot) {
    const RedisAddress* const mine = owner(static_cast<std::uint16_t>(slot));
    const RedisAddress* const its = other.owner(static_cast<std::uint16_t>(slot));
    if ((mine == nullptr) != (its == nullptr)) return false;
    if (mine != nullptr && !is_same(*mine, *its)) return false;
  }
  return true;
}

std::optional<SlotMap> slots_of(const redisReply& reply, const RedisAddress& asked) {
  // Ranges do not overlap, and each has a slot at least.
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements > kKeySlots) return std::nullopt;
  SlotMap map;
  for (std::size_t i = 0; i < reply.elements; ++i) {
    const redisReply& range = *reply.element[i];
    const bool expected = range.type == REDIS_REPLY_ARRAY && range.elements >= 3 &&
                          range.element[0]->type == REDIS_REPLY_INTEGER &&
                          range.element[1]->type == REDIS_REPLY_INTEGER &&
                          is_slot(range.element[0]->integer) && is_slot(range.element[1]->integer);
    if (!expected) return std::nullopt;
    const auto primary = node_of(*range.element[2], asked);
    if (!primary) continue;
    for (long long slot = range.element[0]->integer; slot <= range.element[1]->integer; ++slot) {
      map.set(static_cast<std::uint16_t>(slot), *primary);
    }
  }
  return map;
}

Result<SlotMap> ask_slots(RedisSession& session, const RedisAddress& asked) {
  SPEEDO_ASSIGN(const RedisSession::Reply reply, session.command({"CLUSTER", "SLOTS"}));
  auto map = slots_of(*reply, asked);
  if (map) return std::move(*map);
  return Error{ErrorCode::kInternal, "Redis at " + session.where() +
                                         " answered CLUSTER SLOTS in an unknown form"};
}

std::optional<RedisRedirect> redirect_of(std::string_view reply, const RedisAddress& asked) {
  std::string_view rest = reply;
  const std::string_view word = take_word(rest);
  RedisRedirect redirect;
  if (word == "TRYAGAIN" || word == "CLUSTERDOWN") {
    redirect.kind = word == "TRYAGAIN" ? RedisRedirect::Kind::kTryAgain
                                       : RedisRedirect::Kind::kDown;
    return redirect;
  }
  if (word != "MOVED" && word != "ASK") return std::nullopt;
  redirect.kind = word == "MOVED" ? RedisRedirect::Kind::kMoved : RedisRedirect::Kind::kAsk;
  const auto slot = parse_number<std::uint16_t>(take_word(rest));
  if (!slot || !is_slot(*slot)) return std::nullopt;
  redirect.slot = *slot;
  const auto place = place_of(take_word(rest), asked);
  // A node that does not know where another one is will learn it.
  if (!place) redirect.kind = RedisRedirect::Kind::kDown;
  if (place) redirect.node = *place;
  return redirect;
}

}  // namespace speedo
