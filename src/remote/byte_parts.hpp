#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace speedo {

// Bytes [begin, end) of a file.
struct ByteSpan {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t bytes() const { return end - begin; }
  bool operator==(const ByteSpan&) const = default;
};

// A file cut into parts of one size, the last one shorter, and which of them are still missing.
class ByteParts {
 public:
  // Requires: part_bytes > 0.
  ByteParts(std::uint64_t bytes, std::uint64_t part_bytes);

  std::size_t count() const { return states_.size(); }  // 0 for an empty file
  std::uint64_t part_bytes() const { return part_bytes_; }
  ByteSpan span(std::size_t part) const;
  void mark_there(std::size_t part) { states_[part] = State::kThere; }
  bool is_there(std::size_t part) const { return states_[part] == State::kThere; }
  std::uint64_t bytes_there() const;
  // The first part that is missing and that nobody has taken; it is taken now.
  std::optional<std::size_t> take();

 private:
  enum class State : std::uint8_t { kMissing, kTaken, kThere };
  std::uint64_t bytes_, part_bytes_;
  std::vector<State> states_;
};

// What "bytes 0-99/1000" says; `total` is missing in "bytes 0-99/*".
struct ContentRange {
  ByteSpan span;
  std::optional<std::uint64_t> total;
};

// Nothing for what is not of this form. "bytes */1000" has an empty span.
std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace speedo
