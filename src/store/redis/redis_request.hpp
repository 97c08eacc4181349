#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/key_value.hpp"
#include "store/redis/reply_reader.hpp"

namespace speedo {

// The command that an operation goes out as: "SETEX"; of a master "EVAL".
std::string_view command_of(const KvOperation& operation);

// Where its reply's bytes go.
BulkSink sink_of(KvOperation& operation);

// One operation as Redis' protocol on its way out. Only the command's words are copied; the body of
// a value goes out from where it lies.
class RedisRequest {
 public:
  // Makes the head of a value that has none yet. `asks`: with ASKING before it, which has a reply
  // of its own.
  explicit RedisRequest(KvPtr operation, bool asks = false);

  // Appends what is still to be sent.
  void append_to(std::vector<iovec>& vectors) const;
  // Takes what of `bytes` sent bytes belongs to this request off it; returns the rest.
  std::size_t sent(std::size_t bytes);
  bool complete() const { return sent_ == total(); }

 private:
  std::size_t total() const;
  KvPtr operation_;
  std::string front_;  // command, key, length and head of the value
  std::string back_;   // line end after the body
  std::size_t sent_ = 0;
};

}  // namespace speedo
