// marker    := "Exif" 0 0 tiff
// tiff      := ("II" | "MM") 42(2) OFFSET(4)          the offset, within tiff, of the directory
// directory := COUNT(2) entry*                        numbers little-endian (II) or big-endian (MM)
// entry     := TAG(2) TYPE(2) COUNT(4) VALUE(4)       a SHORT's are the first two bytes of it

#include "data/image/exif_orientation.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace speedo {

namespace {

constexpr std::string_view kExif("Exif\0\0", 6), kLittle("II*\0", 4), kBig("MM\0*", 4);
constexpr std::size_t kEntryBytes = 12;
constexpr std::uint32_t kOrientationTag = 0x0112;

// Numbers of a TIFF header; beyond its end zeros.
class TiffNumbers {
 public:
  explicit TiffNumbers(std::span<const std::byte> bytes)
      : bytes_(bytes), is_big_(!bytes.empty() && bytes.front() == std::byte{'M'}) {}

  std::uint32_t at(std::size_t offset, std::size_t count) const {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = offset + (is_big_ ? i : count - 1 - i);
      number = number << 8U |
               (place < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[place]) : 0);
    }
    return number;
  }

 private:
  std::span<const std::byte> bytes_;
  bool is_big_;
};

bool has_head(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Rows become columns.
void transpose(DecodedPixels& pixels) {
  DecodedPixels turned;
  turned.resize(pixels.channels, pixels.width, pixels.height);
  const auto bytes = static_cast<std::size_t>(pixels.channels);
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::uint8_t* from = pixels.row(y);
    for (std::int64_t x = 0; x < pixels.width; ++x, from += bytes) {
      std::memcpy(turned.row(x) + y * pixels.channels, from, bytes);
    }
  }
  pixels = std::move(turned);
}

void mirror_rows(DecodedPixels& pixels) {
  const std::int64_t bytes = pixels.channels;
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    std::uint8_t* left = pixels.row(y);
    std::uint8_t* right = left + (pixels.width - 1) * bytes;
    for (; left < right; left += bytes, right -= bytes) std::swap_ranges(left, left + bytes, right);
  }
}

void swap_rows(DecodedPixels& pixels) {
  const std::int64_t bytes = pixels.width * pixels.channels;
  for (std::int64_t top = 0, bottom = pixels.height - 1; top < bottom; ++top, --bottom) {
    std::swap_ranges(pixels.row(top), pixels.row(top) + bytes, pixels.row(bottom));
  }
}

}  // namespace

std::optional<int> exif_orientation(std::span<const std::byte> marker) {
  if (!has_head(marker, kExif)) return std::nullopt;
  return tiff_orientation(marker.subspan(kExif.size()));
}

std::optional<int> tiff_orientation(std::span<const std::byte> tiff) {
  if (!has_head(tiff, kLittle) && !has_head(tiff, kBig)) return std::nullopt;
  const TiffNumbers numbers(tiff);
  std::size_t entry = numbers.at(4, 4);
  const std::uint32_t count = numbers.at(entry, 2);
  entry += 2;
  for (std::uint32_t i = 0; i < count && entry < tiff.size(); ++i, entry += kEntryBytes) {
    if (numbers.at(entry, 2) == kOrientationTag) return static_cast<int>(numbers.at(entry + 8, 2));
  }
  return std::nullopt;
}

void turn_upright(DecodedPixels& pixels) {
  const int orientation = std::exchange(pixels.orientation, 1);
  if (orientation < 1 || orientation > 8) return;
  if (orientation >= 5) transpose(pixels);
  const bool ends_right = orientation == 2 || orientation == 3 || orientation == 6 ||
                          orientation == 7;
  const bool ends_low = orientation == 3 || orientation == 4 || orientation == 7 ||
                        orientation == 8;
  if (ends_right) mirror_rows(pixels);
  if (ends_low) swap_rows(pixels);
}

}  // namespace speedo
