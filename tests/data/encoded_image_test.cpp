#include <cstdlib>

#include <png.h>

#include "data/image/encoded_image.hpp"
#include "data_support.hpp"
#include "jpeg_support.hpp"

namespace speedo {
namespace {

// A PNG of 2 x 3 pixels in the given format.
std::string png_of(png_uint_32 format, const std::vector<std::uint8_t>& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = 3;
  image.height = 2;
  image.format = format;
  png_alloc_size_t bytes = 0;
  REQUIRE(png_image_write_to_memory(&image, nullptr, &bytes, 0, pixels.data(), 0, nullptr));
  std::string file(bytes, '\0');
  REQUIRE(png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr));
  file.resize(bytes);
  return file;
}

// A JPEG of 16 x 16 equal pixels.
std::string jpeg_of(int channels, std::uint8_t first, std::uint8_t others) {
  std::vector<std::uint8_t> row(static_cast<std::size_t>(16 * channels), others);
  for (std::size_t i = 0; i < row.size(); i += static_cast<std::size_t>(channels)) row[i] = first;
  return make_jpeg(16, channels, row,
                   [](jpeg_compress_struct& encoder) { jpeg_set_quality(&encoder, 100, TRUE); });
}

Result<void> decode(const std::string& file, ImageColor color, Record& record) {
  return decode_image(std::as_bytes(std::span(file)), color, record);
}

TEST_CASE("a PNG becomes planes, blue first") {
  const std::string file = png_of(PNG_FORMAT_RGB, {1, 2, 3, 4, 5, 6, 7, 8, 9,  //
                                                   10, 11, 12, 13, 14, 15, 16, 17, 18});
  Record record;
  REQUIRE(decode(file, ImageColor::kNative, record));
  CHECK(record.channels == 3);
  CHECK(record.height == 2);
  CHECK(record.width == 3);
  CHECK(record.bytes ==
        std::vector<std::uint8_t>{3, 6, 9, 12, 15, 18, 2, 5, 8, 11, 14, 17, 1, 4, 7, 10, 13, 16});
  REQUIRE(decode(file, ImageColor::kGray, record));
  CHECK(record.channels == 1);
  // 0.299 x 1 + 0.587 x 2 + 0.114 x 3, cut, as libpng does.
  CHECK(record.bytes == std::vector<std::uint8_t>{1, 4, 7, 10, 13, 16});
}

TEST_CASE("a grey PNG stays grey unless colour is asked for") {
  const std::string file = png_of(PNG_FORMAT_GRAY, {1, 50, 100, 150, 200, 250});
  Record record;
  REQUIRE(decode(file, ImageColor::kNative, record));
  CHECK(record.bytes == std::vector<std::uint8_t>{1, 50, 100, 150, 200, 250});
  REQUIRE(decode(file, ImageColor::kColor, record));
  CHECK(record.channels == 3);
  CHECK(record.bytes[6] == 1);
  CHECK(record.bytes[17] == 250);
}

TEST_CASE("a JPEG becomes planes, blue first") {
  Record record;
  REQUIRE(decode(jpeg_of(3, 200, 100), ImageColor::kNative, record));
  REQUIRE(record.channels == 3);
  REQUIRE(record.bytes.size() == 3 * 256);
  CHECK(std::abs(record.bytes[0] - 100) <= 2);
  CHECK(std::abs(record.bytes[600] - 200) <= 2);
  REQUIRE(decode(jpeg_of(1, 77, 77), ImageColor::kNative, record));
  CHECK(record.channels == 1);
  CHECK(record.bytes == std::vector<std::uint8_t>(256, 77));
  REQUIRE(decode(jpeg_of(1, 77, 77), ImageColor::kColor, record));
  CHECK(record.channels == 3);
}

TEST_CASE("images cut at any byte are errors") {
  Record record;
  for (const std::string& file :
       {png_of(PNG_FORMAT_RGB, std::vector<std::uint8_t>(18, 9)), jpeg_of(3, 1, 2)}) {
    // The last bytes of both formats are end marks that readers may do without.
    for (std::size_t cut = 0; cut + 16 < file.size(); ++cut) {
      INFO("cut at " << cut << " of " << file.size());
      REQUIRE_FALSE(decode(file.substr(0, cut), ImageColor::kNative, record));
    }
  }
}

}  // namespace
}  // namespace speedo
