#pragma once

#include <memory>
#include <string_view>

#include <hiredis/hiredis.h>

namespace speedo::test {

using RedisReplyPtr = std::unique_ptr<redisReply, void (*)(void*)>;

// Of Redis' protocol, as hiredis takes it apart; null if that is not one whole reply.
inline RedisReplyPtr redis_reply(std::string_view bytes) {
  const std::unique_ptr<redisReader, void (*)(redisReader*)> reader(redisReaderCreate(),
                                                                    redisReaderFree);
  void* reply = nullptr;
  redisReaderFeed(reader.get(), bytes.data(), bytes.size());
  redisReaderGetReply(reader.get(), &reply);
  return {static_cast<redisReply*>(reply), freeReplyObject};
}

}  // namespace speedo::test
