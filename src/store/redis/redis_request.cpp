#include "store/redis/redis_request.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include <speedo/base/assert.hpp>

#include "store/mastership.hpp"
#include "store/redis/line_end.hpp"
#include "store/redis/master_scripts.hpp"

namespace speedo {
namespace {

void append_count(std::string& text, char mark, std::size_t count) {
  text += mark;
  text += std::to_string(count);
  text += kLineEnd;
}

void append_word(std::string& text, std::string_view word) {
  append_count(text, '$', word.size());
  text += word;
  text += kLineEnd;
}

std::string words(std::size_t count, std::initializer_list<std::string_view> list) {
  std::string text;
  append_count(text, '*', count);
  for (const std::string_view word : list) append_word(text, word);
  return text;
}

// An operation of a master: script, its keys, the master's term; `more` words follow.
std::string script_front(const KvOperation& operation, std::string_view script,
                         std::span<const std::string> keys, std::size_t more) {
  const KvMaster& master = *operation.master;
  std::string text = words(6 + keys.size() + more, {"EVAL", script, std::to_string(2 + keys.size()),
                                                    master.term_key, master.lease_key});
  for (const std::string& key : keys) append_word(text, key);
  append_word(text, encode_term(master.term));
  return text;
}

// A write of a master, or of one of its programs that write one after another.
std::string write_front(const KvOperation& operation, std::string_view end,
                        std::vector<std::string> keys, std::size_t more) {
  const KvMaster& master = *operation.master;
  const bool by_one = master.writer_key.empty();
  if (!by_one) keys.push_back(master.writer_key);
  std::string text =
      script_front(operation, std::string(kWriteStart).append(end), keys, 1 + more);
  append_word(text, by_one ? "" : encode_writer(master));
  return text;
}

// The value is the last word of every form, so that the body ends the request.
std::string set_front(const KvOperation& operation) {
  const std::string expiry = std::to_string(operation.expiry_seconds);
  std::string text;
  if (operation.master) {
    text = write_front(operation, kSetEnd, {operation.key}, 2);
    append_word(text, expiry);
  } else if (operation.expiry_seconds == 0) {
    text = words(3, {"SET", operation.key});
  } else {
    text = words(4, {"SETEX", operation.key, expiry});
  }
  append_count(text, '$', operation.head.size() + operation.body.size());
  text += operation.head;
  return text;
}

std::string claim_front(const KvOperation& operation) {
  const KvMaster& master = *operation.master;
  std::string text = script_front(operation, kClaimScript, {}, 5);
  append_word(text, master.holder);
  append_word(text, std::to_string(master.time.count()));
  append_word(text, master.is_new ? "1" : "0");
  append_word(text, master.force ? "1" : "0");
  append_word(text, master.dead_holder);
  return text;
}

std::string release_front(const KvOperation& operation) {
  std::string text = script_front(operation, kReleaseScript, {}, 1);
  append_word(text, operation.master->holder);
  return text;
}

std::string erase_front(const KvOperation& operation) {
  if (operation.master) return write_front(operation, kEraseEnd, operation.keys, 0);
  std::string text = words(operation.keys.size() + 1, {"UNLINK"});
  for (const std::string& key : operation.keys) append_word(text, key);
  return text;
}

}  // namespace

BulkSink sink_of(KvOperation& operation) {
  const bool is_text = operation.kind == KvOperation::Kind::kGetWhole ||
                       operation.kind == KvOperation::Kind::kGetStart;
  if (is_text || operation.has_answer()) {
    return BulkSink{{}, {}, &operation.text};
  }
  if (operation.kind != KvOperation::Kind::kGetExact) return BulkSink{};
  return BulkSink{std::as_writable_bytes(std::span(operation.head)), operation.target, nullptr};
}

std::string_view command_of(const KvOperation& operation) {
  if (operation.master) return "EVAL";
  switch (operation.kind) {
    case KvOperation::Kind::kSet:
      return operation.expiry_seconds == 0 ? "SET" : "SETEX";
    case KvOperation::Kind::kGetStart:
      return "GETRANGE";
    case KvOperation::Kind::kErase:
      return "UNLINK";
    default:
      return "GET";
  }
}

RedisRequest::RedisRequest(KvPtr operation, bool asks) : operation_(std::move(operation)) {
  switch (operation_->kind) {
    case KvOperation::Kind::kSet:
      if (operation_->make_head && operation_->head.empty()) {
        operation_->head = operation_->make_head(operation_->body);
      }
      front_ = set_front(*operation_);
      back_ = kLineEnd;
      break;
    case KvOperation::Kind::kGetExact:
    case KvOperation::Kind::kGetWhole:
      front_ = words(2, {"GET", operation_->key});
      break;
    case KvOperation::Kind::kGetStart:
      SPEEDO_ASSERT(operation_->start_bytes > 0);
      front_ = words(4, {"GETRANGE", operation_->key, "0",
                         std::to_string(operation_->start_bytes - 1)});
      break;
    case KvOperation::Kind::kErase:
      front_ = erase_front(*operation_);
      break;
    case KvOperation::Kind::kClaim:
      front_ = claim_front(*operation_);
      break;
    case KvOperation::Kind::kRelease:
      front_ = release_front(*operation_);
      break;
  }
  if (asks) front_.insert(0, words(1, {"ASKING"}));
}

std::size_t RedisRequest::total() const {
  return front_.size() + operation_->body.size() + back_.size();
}

void RedisRequest::append_to(std::vector<iovec>& vectors) const {
  const std::array<std::span<const std::byte>, 3> parts = {
      std::as_bytes(std::span(front_)), operation_->body, std::as_bytes(std::span(back_))};
  std::size_t skip = sent_;
  for (const std::span<const std::byte>& part : parts) {
    const std::size_t skipped = std::min(skip, part.size());
    skip -= skipped;
    const std::span<const std::byte> rest = part.subspan(skipped);
    // sendmsg() takes no const, and does not write.
    if (!rest.empty()) vectors.push_back({const_cast<std::byte*>(rest.data()), rest.size()});
  }
}

std::size_t RedisRequest::sent(std::size_t bytes) {
  const std::size_t taken = std::min(bytes, total() - sent_);
  sent_ += taken;
  if (taken > 0) operation_->count_progress();
  return bytes - taken;
}

}  // namespace speedo
