#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "data/image/encoded_image.hpp"

namespace speedo {

// An image as its decoder leaves it: rows of interleaved pixels, in memory of its own or, where
// there is enough, in that which it is given.
class DecodedPixels {
 public:
  DecodedPixels() = default;
  explicit DecodedPixels(std::span<std::uint8_t> room) : room_(room) {}
  DecodedPixels(DecodedPixels&&) = default;
  DecodedPixels& operator=(DecodedPixels&&) = default;

  std::span<std::uint8_t> values;
  std::int64_t channels = 0;  // 1: gray, 3: blue, green, red, 4: and alpha
  std::int64_t height = 0, width = 0;
  int orientation = 1;  // how the file says that they are to be seen (exif_orientation.hpp)

  // Makes room for an image of these sizes, of zeros. Called again, it leaves the values as they
  // are. Requires: they become no more.
  void resize(std::int64_t channel_count, std::int64_t rows, std::int64_t columns) {
    channels = channel_count;
    height = rows;
    width = columns;
    const auto count = static_cast<std::size_t>(channels * height * width);
    if (values.empty()) take(count);
    values = values.first(count);
  }
  std::uint8_t* row(std::int64_t y) { return values.data() + y * width * channels; }
  bool is_in_room() const { return own_.empty(); }

 private:
  void take(std::size_t count) {
    if (count <= room_.size()) {
      values = room_.first(count);
      std::fill(values.begin(), values.end(), std::uint8_t{0});
    } else {
      own_.resize(count);
      values = own_;
    }
  }

  std::span<std::uint8_t> room_;
  std::vector<std::uint8_t> own_;
};

// What the header of an image announces, before memory is taken for it.
struct AnnouncedImage {
  std::uint64_t height = 0, width = 0;
  std::uint64_t packed = 0;    // bytes that the file must hold at least, unpacked
  std::uint64_t capacity = 0;  // the most that its bytes can unpack to
  std::uint64_t file_bytes = 0;
};

// Of each pixel's bytes of blue, green and red the gray, the weights being in 1/32768; alpha goes.
// Requires: there are colors.
struct GrayWeights {
  std::uint32_t blue = 0, green = 0, red = 0;
  std::uint32_t rounding = 0;  // what is added before the lower bits are cut
};
void make_gray(DecodedPixels& pixels, const GrayWeights& weights);

// Error kData. `what` may hold what a library says of the file.
Error bad_image(const std::string& what);

// Error kData: the image has no pixels, too many, more than its bytes can hold or than memory.
Result<void> check_image(const AnnouncedImage& image);

// decode_image() up to the pixels as the file has them: the planes, and grays of what is not gray,
// are left to do.
Result<void> decode_pixels(std::span<const std::byte> file, ImageColor color,
                           DecodedPixels& pixels);

// One for each format. `color` is a wish: one that the decoder can do at once, it does; what is
// left is done by decode_image(). Errors: kData for damaged files, kUnsupported for kinds of the
// format that are not read.
Result<void> decode_png(std::span<const std::byte> file, ImageColor color, DecodedPixels& pixels);
Result<void> decode_jpeg(std::span<const std::byte> file, ImageColor color, DecodedPixels& pixels);
Result<void> decode_webp(std::span<const std::byte> file, ImageColor color, DecodedPixels& pixels);
Result<void> decode_tiff(std::span<const std::byte> file, DecodedPixels& pixels);
Result<void> decode_bmp(std::span<const std::byte> file, DecodedPixels& pixels);
Result<void> decode_pnm(std::span<const std::byte> file, DecodedPixels& pixels);

}  // namespace speedo
