#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>

namespace speedo::test {

// A reply as redis-cli writes it to a file: an array's elements line by line.
inline std::string text_of(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return std::to_string(reply.integer);
  if (reply.type == REDIS_REPLY_NIL) return "";
  if (reply.type != REDIS_REPLY_ARRAY) return {reply.str, reply.len};
  std::string text;
  for (std::size_t i = 0; i < reply.elements; ++i) {
    if (i > 0) text += '\n';
    text += text_of(*reply.element[i]);
  }
  return text;
}

// What the server on a port of this machine answers to `words`, which spaces separate and may be in
// '', or why it does not.
inline std::string ask_redis(int port, const std::string& words, const std::string& password = "") {
  const std::unique_ptr<redisContext, void (*)(redisContext*)> context(
      redisConnect("127.0.0.1", port), redisFree);
  if (!context) return "no memory for a connection";
  const auto ask = [&](const std::vector<std::string>& command) -> std::string {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const std::string& word : command) {
      texts.push_back(word.data());
      lengths.push_back(word.size());
    }
    const std::unique_ptr<redisReply, void (*)(void*)> reply(
        static_cast<redisReply*>(redisCommandArgv(context.get(), static_cast<int>(command.size()),
                                                  texts.data(), lengths.data())),
        freeReplyObject);
    return reply ? text_of(*reply) : context->errstr;
  };
  if (context->err != 0) return context->errstr;
  if (!password.empty()) ask({"AUTH", password});
  std::istringstream stream(words);
  std::vector<std::string> command;
  for (std::string word; stream >> word;) {
    const bool is_quoted = word.size() > 1 && word.front() == '\'' && word.back() == '\'';
    command.push_back(is_quoted ? word.substr(1, word.size() - 2) : word);
  }
  return ask(command);
}

}  // namespace speedo::test
