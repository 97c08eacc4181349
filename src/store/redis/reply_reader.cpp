#include "store/redis/reply_reader.hpp"

#include <algorithm>
#include <cstring>

#include <speedo/base/assert.hpp>
#include <speedo/store/layout.hpp>

#include "base/parse_number.hpp"
#include "store/redis/line_end.hpp"

namespace speedo {
namespace {

Error not_resp(std::string_view bytes) {
  std::string shown;
  for (const char c : bytes.substr(0, 40)) shown += (c >= ' ' && c <= '~') ? c : '.';
  return Error{ErrorCode::kInternal, "the answer is not Redis' protocol: '" + shown + "'"};
}

}  // namespace

ReplyReader::ReplyReader() : buffer_(kBufferBytes) {}

void ReplyReader::reset() {
  begin_ = end_ = 0;
  in_bulk_ = false;
  skip_ = 0;
  wanted_ = {};
}

std::string_view ReplyReader::buffered() const {
  return std::string_view(buffer_.data() + begin_, end_ - begin_);
}

// Within a bulk only the line end and the head of the next reply may spill into the buffer: what of
// the next value arrived there would have to be copied.
std::span<iovec> ReplyReader::receive_into() {
  constexpr std::size_t kSpillBytes = 128;
  std::size_t count = 0;
  if (in_bulk_) {
    for (std::span<std::byte>& part : wanted_) {
      if (!part.empty()) vectors_[count++] = {part.data(), part.size()};
    }
  }
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0 && end_ + kSpillBytes > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  std::size_t room = buffer_.size() - end_;
  if (count > 0) room = std::min(room, kSpillBytes);
  SPEEDO_ASSERT(room > 0);
  vectors_[count++] = {buffer_.data() + end_, room};
  return std::span(vectors_).first(count);
}

void ReplyReader::received(std::size_t bytes) {
  if (in_bulk_) {
    for (std::span<std::byte>& part : wanted_) {
      const std::size_t taken = std::min(bytes, part.size());
      part = part.subspan(taken);
      bytes -= taken;
    }
  }
  end_ += bytes;
  SPEEDO_ASSERT(end_ <= buffer_.size());
}

Result<std::optional<ReplyReader::Reply>> ReplyReader::next(const BulkSink& sink) {
  if (!in_bulk_) {
    auto reply = next_line(sink);
    if (!reply || reply->has_value() || !in_bulk_) return reply;
  }
  return continue_bulk();
}

Result<std::optional<ReplyReader::Reply>> ReplyReader::next_line(const BulkSink& sink) {
  const std::string_view bytes = buffered();
  const std::size_t length = bytes.find(kLineEnd);
  if (length == std::string_view::npos) {
    if (bytes.size() >= kBufferBytes / 2) return not_resp(bytes);
    return std::optional<Reply>();
  }
  if (length == 0) return not_resp(bytes);
  const std::string_view rest = bytes.substr(1, length - 1);
  begin_ += length + kLineEnd.size();
  switch (bytes[0]) {
    case '+':
      return std::optional(Reply{Kind::kStatus, std::string(rest), 0});
    case '-':
      return std::optional(Reply{Kind::kError, std::string(rest), 0});
    case ':':
      return std::optional(Reply{Kind::kInteger, std::string(rest), 0});
    case '$':
      if (rest == "-1") return std::optional(Reply{Kind::kNil, "", 0});
      SPEEDO_TRY(begin_bulk(sink, rest));
      return std::optional<Reply>();
    default:
      return not_resp(bytes);
  }
}

Result<void> ReplyReader::begin_bulk(const BulkSink& sink, std::string_view digits) {
  const auto length = parse_number<std::size_t>(digits);
  if (!length) return not_resp(digits);
  in_bulk_ = true;
  bulk_ = Reply{Kind::kBulk, "", *length};
  skip_ = 0;
  if (sink.whole != nullptr && *length <= kBlobBytesMax) {
    sink.whole->resize(*length);
    wanted_ = {std::as_writable_bytes(std::span(*sink.whole)), std::span<std::byte>()};
  } else if (sink.whole == nullptr && *length == sink.head.size() + sink.body.size()) {
    wanted_ = {sink.head, sink.body};
  } else {
    bulk_.kind = Kind::kWrongLength;
    const std::span<std::byte> head = sink.head.first(std::min(*length, sink.head.size()));
    wanted_ = {head, std::span<std::byte>()};
    skip_ = *length - head.size();
  }
  return {};
}

void ReplyReader::take_from_buffer(std::span<std::byte>& part) {
  const std::size_t taken = std::min(part.size(), end_ - begin_);
  if (taken == 0) return;
  std::memcpy(part.data(), buffer_.data() + begin_, taken);
  part = part.subspan(taken);
  begin_ += taken;
}

std::optional<ReplyReader::Reply> ReplyReader::continue_bulk() {
  for (std::span<std::byte>& part : wanted_) take_from_buffer(part);
  const std::size_t skipped = std::min(skip_, end_ - begin_);
  skip_ -= skipped;
  begin_ += skipped;
  const bool complete = wanted_[0].empty() && wanted_[1].empty() && skip_ == 0;
  if (!complete || end_ - begin_ < kLineEnd.size()) return std::nullopt;
  begin_ += kLineEnd.size();
  in_bulk_ = false;
  return bulk_;
}

}  // namespace speedo
