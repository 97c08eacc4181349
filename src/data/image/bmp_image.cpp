// file   := "BM" size:u32 0:u32 pixels_at:u32 header palette ... rows     (little-endian)
// header := size:u32 width:i32 height:i32 planes:u16 bits:u16 packing:u32 bytes:u32 x:u32 y:u32
//           colors:u32 important:u32 ...        height < 0: the first row is the top one
// rows   := each a whole number of four bytes; 1, 4 and 8 bits name colors of the palette, 24 and
//           32 bits are blue, green, red

#include <cstdint>

#include <fmt/format.h>

#include "data/image/decoded_pixels.hpp"
#include "data/random_file.hpp"

namespace speedo {

namespace {

constexpr std::size_t kBmpHeaderAt = 14, kBmpHeaderBytes = 40, kBmpColorBytes = 4;

struct Bmp {
  std::uint64_t pixels_at = 0, row_bytes = 0;
  std::span<const std::byte> palette;  // of whole colors
  std::int64_t height = 0, width = 0;
  unsigned bits = 0;
  bool top_first = false;
};

Result<Bmp> read_header(std::span<const std::byte> file) {
  if (file.size() < kBmpHeaderAt + kBmpHeaderBytes) return bad_image("is a BMP cut off");
  const std::byte* header = file.data() + kBmpHeaderAt;
  Bmp bmp;
  bmp.pixels_at = little32(file.data() + 10);
  bmp.width = static_cast<std::int32_t>(little32(header + 4));
  bmp.height = static_cast<std::int32_t>(little32(header + 8));
  bmp.bits = little16(header + 14);
  bmp.top_first = bmp.height < 0;
  if (bmp.top_first) bmp.height = -bmp.height;
  const std::uint32_t header_bytes = little32(header), packing = little32(header + 16);
  // 3: the places of the colors are given; they are nearly always the usual ones.
  const bool plain = packing == 0 || (packing == 3 && bmp.bits == 32);
  const bool known =
      bmp.bits == 1 || bmp.bits == 4 || bmp.bits == 8 || bmp.bits == 24 || bmp.bits == 32;
  if (header_bytes < kBmpHeaderBytes || !plain || !known) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("holds a BMP of a kind that is not read ({} bits, packing {}); convert "
                    "it to PNG",
                    bmp.bits, packing)};
  }
  if (bmp.width < 1 || bmp.height < 1) return bad_image("is a BMP without pixels");
  bmp.row_bytes = (static_cast<std::uint64_t>(bmp.width) * bmp.bits + 31) / 32 * 4;
  SPEEDO_TRY(check_image(
      {static_cast<std::uint64_t>(bmp.height), static_cast<std::uint64_t>(bmp.width),
       static_cast<std::uint64_t>(bmp.height) * bmp.row_bytes, file.size(), file.size()}));
  const std::uint64_t rows = bmp.row_bytes * static_cast<std::uint64_t>(bmp.height);
  if (bmp.pixels_at > file.size() || rows > file.size() - bmp.pixels_at) {
    return bad_image("is a BMP cut off");
  }
  if (bmp.bits <= 8) {
    const std::uint64_t from = kBmpHeaderAt + std::uint64_t{header_bytes};
    std::uint64_t colors = little32(header + 32);
    if (colors == 0) colors = std::uint64_t{1} << bmp.bits;
    if (from > file.size() || colors > 256 || colors * kBmpColorBytes > file.size() - from) {
      return bad_image("is a BMP with a damaged palette");
    }
    bmp.palette = file.subspan(from, colors * kBmpColorBytes);
  }
  return bmp;
}

bool is_gray(std::span<const std::byte> palette) {
  for (std::size_t i = 0; i < palette.size(); i += kBmpColorBytes) {
    if (palette[i] != palette[i + 1] || palette[i] != palette[i + 2]) return false;
  }
  return !palette.empty();
}

// False for a color that the palette lacks.
bool set_row(const Bmp& bmp, const std::byte* row, std::int64_t channels, std::uint8_t* target) {
  for (std::int64_t x = 0; x < bmp.width; ++x, target += channels) {
    const std::byte* color = row + x * (bmp.bits / 8);
    if (bmp.bits <= 8) {
      const std::int64_t bit = x * bmp.bits;
      const auto byte = std::to_integer<unsigned>(row[bit / 8]);
      const unsigned shift = 8 - bmp.bits - static_cast<unsigned>(bit % 8);
      const std::size_t at = (byte >> shift & ((1U << bmp.bits) - 1U)) * kBmpColorBytes;
      if (at >= bmp.palette.size()) return false;
      color = bmp.palette.data() + at;
    }
    for (std::int64_t c = 0; c < channels; ++c) target[c] = std::to_integer<std::uint8_t>(color[c]);
  }
  return true;
}

}  // namespace

Result<void> decode_bmp(std::span<const std::byte> file, DecodedPixels& pixels) {
  SPEEDO_ASSIGN(const Bmp bmp, read_header(file));
  pixels.resize(is_gray(bmp.palette) ? 1 : 3, bmp.height, bmp.width);
  for (std::int64_t y = 0; y < bmp.height; ++y) {
    const std::int64_t row = bmp.top_first ? y : bmp.height - 1 - y;
    const std::byte* from =
        file.data() + bmp.pixels_at + static_cast<std::uint64_t>(row) * bmp.row_bytes;
    if (!set_row(bmp, from, pixels.channels, pixels.row(y))) {
      return bad_image("is a BMP with colors that its palette lacks");
    }
  }
  return {};
}

}  // namespace speedo
