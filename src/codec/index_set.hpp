#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <speedo/codec/codec.hpp>

namespace speedo {

// Which of a chunk's values are sent, as bits in memory; as bytes the shorter of two forms:
//
//   gaps    for each index in ascending order how many indices lie between it and the one before:
//           7 bits a byte, the lowest first, the highest bit set in all but the number's last byte
//   bitmap  a bit for each value, the first in the lowest bit of the first byte; 0 behind the last
class IndexSet {
 public:
  enum class Form : std::uint32_t { kGaps = 1, kBitmap = 2 };

  // Of `count` values, none of them marked.
  explicit IndexSet(std::size_t count);

  // Marks exactly those values whose magnitude is that of `least` or larger.
  void mark_from(std::span<const float> values, float least);
  void unmark(std::size_t index);
  std::size_t size() const;

  // Bytes that any set of so many indices below `count` needs at most.
  static std::size_t bytes_max(std::size_t count);
  Form shorter_form() const;
  // Writes the set in that form; returns how many bytes it wrote.
  std::size_t write(Form form, std::byte* target) const;
  // Marks the `size` indices that the first of `bytes` name, and returns how many bytes that was:
  // none if they are no set of so many in that form; the set is void then.
  std::optional<std::size_t> read(Form form, std::size_t size, std::span<const std::byte> bytes);

  // Calls visit(index) for each, in ascending order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t word = 0; word < word_count(); ++word) {
      for (std::uint64_t rest = words_[word]; rest != 0; rest &= rest - 1) {
        visit(64 * word + static_cast<std::size_t>(std::countr_zero(rest)));
      }
    }
  }

 private:
  std::size_t word_count() const { return (count_ + 63) / 64; }
  std::optional<std::size_t> read_gaps(std::size_t size, std::span<const std::byte> bytes);
  std::optional<std::size_t> read_bitmap(std::size_t size, std::span<const std::byte> bytes);

  std::size_t count_;
  std::array<std::uint64_t, kCodecElementsMax / 64> words_;  // 32 KiB; word_count() of them count
};

}  // namespace speedo
