// file := "P" kind blanks width blanks height blanks [largest blanks] values
//   kind 1, 4: bits (1 is black), 2, 5: gray, 3, 6: red, green, blue; from 4 on the values are
//   bytes (two, high first, if largest > 255; bits eight a byte, rows of whole bytes), else
//   decimals.
//   '#' begins a comment to the end of the line.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include "data/image/decoded_pixels.hpp"

namespace speedo {

namespace {

class PnmText {
 public:
  PnmText(std::span<const std::byte> file, std::size_t at) : file_(file), at_(at) {}

  // The next decimal number below 2^31, or in a bit map the next digit.
  std::optional<std::uint32_t> number(bool one_digit = false) {
    while (at_ < file_.size() && (std::isspace(letter()) != 0 || letter() == '#')) {
      if (letter() != '#') {
        ++at_;
        continue;
      }
      while (at_ < file_.size() && letter() != '\n') ++at_;
    }
    if (at_ >= file_.size() || std::isdigit(letter()) == 0) return std::nullopt;
    std::uint64_t value = 0;
    while (at_ < file_.size() && std::isdigit(letter()) != 0) {
      value = value * 10 + static_cast<std::uint64_t>(letter() - '0');
      ++at_;
      if (one_digit) break;
      if (value > INT32_MAX) return std::nullopt;
    }
    return static_cast<std::uint32_t>(value);
  }

  std::size_t at() const { return at_; }

 private:
  int letter() const { return std::to_integer<int>(file_[at_]); }

  std::span<const std::byte> file_;
  std::size_t at_;
};

struct Pnm {
  unsigned kind = 0;
  std::uint32_t width = 0, height = 0, largest = 1;

  bool is_bits() const { return kind == 1 || kind == 4; }
  bool is_text() const { return kind < 4; }
  std::int64_t channels() const { return kind == 3 || kind == 6 ? 3 : 1; }
  std::uint64_t value_bytes() const { return largest > 255 ? 2 : 1; }
  std::uint64_t row_values() const { return static_cast<std::uint64_t>(channels()) * width; }
};

// As OpenCV makes a byte of it; nothing for one that is too large. Of two bytes the upper is left,
// decimals become what is written of 255, and bytes stay as they are.
std::optional<std::uint8_t> scaled(const Pnm& pnm, std::uint32_t value) {
  if (value > pnm.largest) return std::nullopt;
  if (pnm.is_bits()) return static_cast<std::uint8_t>(value == 0 ? 255 : 0);
  if (pnm.largest > 255) return static_cast<std::uint8_t>(value >> 8U);
  if (!pnm.is_text()) return static_cast<std::uint8_t>(value);
  return static_cast<std::uint8_t>(std::uint64_t{value} * 255 / pnm.largest);
}

std::uint32_t stored_value(const Pnm& pnm, const std::byte* row, std::uint64_t i) {
  if (pnm.is_bits()) return std::to_integer<unsigned>(row[i / 8]) >> (7 - i % 8) & 1U;
  if (pnm.value_bytes() == 1) return std::to_integer<unsigned>(row[i]);
  return std::to_integer<unsigned>(row[2 * i]) << 8U | std::to_integer<unsigned>(row[2 * i + 1]);
}

Result<void> set_values(const Pnm& pnm, std::span<const std::byte> rows, PnmText text,
                        DecodedPixels& pixels) {
  const std::uint64_t values = pnm.row_values();
  const std::uint64_t row_bytes = pnm.is_bits() ? (values + 7) / 8 : values * pnm.value_bytes();
  for (std::uint64_t y = 0; y < pnm.height; ++y) {
    std::uint8_t* target = pixels.row(static_cast<std::int64_t>(y));
    for (std::uint64_t i = 0; i < values; ++i) {
      std::optional<std::uint32_t> value;
      if (pnm.is_text()) {
        value = text.number(pnm.is_bits());
      } else {
        value = stored_value(pnm, rows.data() + y * row_bytes, i);
      }
      const auto byte = value ? scaled(pnm, *value) : std::nullopt;
      if (!byte) return bad_image("is a damaged PNM");
      // Red, green, blue become blue, green, red.
      target[pixels.channels == 1 ? i : i / 3 * 3 + 2 - i % 3] = *byte;
    }
  }
  return {};
}

}  // namespace

Result<void> decode_pnm(std::span<const std::byte> file, DecodedPixels& pixels) {
  Pnm pnm;
  pnm.kind = std::to_integer<unsigned>(file[1]) - '0';
  PnmText text(file, 2);
  const auto width = text.number(), height = text.number();
  const auto largest = pnm.is_bits() ? std::optional<std::uint32_t>(1) : text.number();
  if (!width || !height || !largest || *largest < 1 || *largest > 65535) {
    return bad_image("is a PNM with a damaged header");
  }
  pnm.width = *width;
  pnm.height = *height;
  pnm.largest = *largest;
  const std::uint64_t values = pnm.row_values();
  const std::uint64_t row_bytes = pnm.is_bits() && !pnm.is_text() ? (values + 7) / 8
                                  : pnm.is_text()                 ? values
                                                                  : values * pnm.value_bytes();
  SPEEDO_TRY(check_image({pnm.height, pnm.width, 0, 0, file.size()}));
  // One blank ends the header; as text each value takes a byte at least.
  const std::size_t from = std::min(text.at() + 1, file.size());
  if (row_bytes * pnm.height > file.size() - from) return bad_image("is a PNM cut off");
  pixels.resize(pnm.channels(), pnm.height, pnm.width);
  return set_values(pnm, file.subspan(from), text, pixels);
}

}  // namespace speedo
