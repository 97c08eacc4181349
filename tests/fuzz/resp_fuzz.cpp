// What a Redis server answers: replies in pieces of any size, and what is made of their texts.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <speedo/base/assert.hpp>

#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "store/mastership.hpp"
#include "store/redis/info_value.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/reply_reader.hpp"
#include "store/redis/slot_map.hpp"
#include "store/redis_reply.hpp"

namespace speedo::fuzz {
namespace {

void read_text(const std::string& text) {
  const RedisAddress asked;
  redis_error(text, "server", {});
  redis_error(text, "server", {.user = "user", .command = "EVAL", .key = "speedo:{job}/term"});
  redirect_of(text, asked);
  info_value(text, "redis_version");
  info_value(text, "maxmemory_policy");
  if (const auto answer = decode_answer(text)) encode_answer(*answer);
}

void read_slots(const std::string& text) {
  const auto reply = test::redis_reply(text);
  if (!reply) return;
  const auto map = slots_of(*reply, RedisAddress());
  if (!map) return;
  SPEEDO_ASSERT(slots_of(*reply, RedisAddress()) == map);
  SPEEDO_ASSERT(!map->lacks().empty() || map->owner(0) != nullptr);
  for (const RedisAddress& each : map->primaries()) SPEEDO_ASSERT(each.port > 0);
}

// Requires: no more bytes than the reader has room for.
void receive(ReplyReader& reader, Bytes bytes) {
  const std::size_t count = bytes.size();
  for (const iovec& part : reader.receive_into()) {
    const std::size_t taken = std::min(part.iov_len, bytes.size());
    if (taken != 0) std::memcpy(part.iov_base, bytes.data(), taken);
    bytes = bytes.subspan(taken);
  }
  reader.received(count);
}

SPEEDO_FUZZ_TARGET(resp)(Bytes bytes) {
  Input input(bytes);
  const std::size_t piece = std::size_t{1} + input.byte();
  const unsigned flags = input.byte();
  const bool whole = (flags & 1U) != 0;
  std::array<std::byte, 32> head;
  std::vector<std::byte> body(input.byte());
  if ((flags & 2U) != 0) read_slots(text_of(input.left()));
  std::string text;
  const BulkSink sink = whole ? BulkSink{.head = {}, .body = {}, .whole = &text}
                              : BulkSink{.head = head, .body = body};
  ReplyReader reader;
  for (;;) {
    const auto reply = reader.next(sink);
    if (!reply) return;
    if (*reply) {
      read_text((*reply)->text);
      if (whole && (*reply)->kind == ReplyReader::Kind::kBulk) {
        SPEEDO_ASSERT(text.size() == (*reply)->length);
        read_text(text);
      }
      continue;
    }
    if (input.left().empty()) return;
    std::size_t room = 0;
    for (const iovec& part : reader.receive_into()) room += part.iov_len;
    receive(reader, input.take(std::min(piece, room)));
  }
}

}  // namespace
}  // namespace speedo::fuzz
