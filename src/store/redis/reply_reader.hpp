#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Where the bytes of one bulk reply go. Both parts together must have the reply's length, unless
// `whole` is set, which then receives all of it.
struct BulkSink {
  std::span<std::byte> head;
  std::span<std::byte> body;
  std::string* whole = nullptr;
};

// Takes replies (RESP version 2, no arrays) apart as they come from a socket. The body of a bulk is
// received straight into its sink; everything else goes through a small buffer.
//   reply = "+" text CRLF | "-" text CRLF | ":" number CRLF | "$-1" CRLF | "$" n CRLF n-bytes CRLF
class ReplyReader {
 public:
  enum class Kind { kStatus, kError, kInteger, kNil, kBulk, kWrongLength };
  struct Reply {
    Kind kind = Kind::kNil;
    std::string text;        // kStatus, kError, kInteger
    std::size_t length = 0;  // kBulk, kWrongLength
  };

  ReplyReader();
  void reset();

  // Where the next received bytes go, in order. Never empty.
  std::span<iovec> receive_into();
  // That many bytes were received.
  void received(std::size_t bytes);

  // The next complete reply, which belongs to `sink`; nothing yet if more bytes are needed. Calls
  // for one reply must pass the same sink. Error: kInternal, the bytes are no RESP.
  Result<std::optional<Reply>> next(const BulkSink& sink);

 private:
  static constexpr std::size_t kBufferBytes = 16384;

  std::string_view buffered() const;
  Result<std::optional<Reply>> next_line(const BulkSink& sink);
  Result<void> begin_bulk(const BulkSink& sink, std::string_view digits);
  std::optional<Reply> continue_bulk();
  void take_from_buffer(std::span<std::byte>& part);

  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool in_bulk_ = false;
  Reply bulk_;
  std::array<std::span<std::byte>, 2> wanted_;  // parts of the sink that are still empty
  std::size_t skip_ = 0;                        // bytes to throw away before the final CRLF
  std::array<iovec, 3> vectors_{};
};

}  // namespace speedo
