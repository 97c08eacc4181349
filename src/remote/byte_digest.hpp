#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

enum class DigestKind : std::uint8_t { kMd5, kSha1, kSha256 };

std::string_view name_of(DigestKind kind);

// What bytes must come to: `hex` in small digits. `from` says who promised it.
struct PromisedDigest {
  DigestKind kind = DigestKind::kSha256;
  std::string hex;
  std::string from;
};

// A digest of bytes as they come.
class ByteDigest {
 public:
  explicit ByteDigest(DigestKind kind);
  ~ByteDigest();
  ByteDigest(ByteDigest&&) noexcept;
  void add(std::span<const std::byte> bytes);
  std::string finish();  // in hexadecimal. Requires: called once.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of the first `bytes` of an open file. Error: kData if it cannot be read, or is shorter.
Result<std::string> digest_of_file(int descriptor, std::uint64_t bytes, DigestKind kind);

// In small hexadecimal digits what a header has in base64; nothing unless it is as long as a digest
// of this kind.
std::optional<std::string> digest_in_base64(DigestKind kind, std::string_view text);

}  // namespace speedo
