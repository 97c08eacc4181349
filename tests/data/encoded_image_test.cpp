#include <cstdlib>

#include <png.h>

#include "data/image/encoded_image.hpp"
#include "data_support.hpp"
#include "jpeg_support.hpp"
#include "png_support.hpp"

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

// EXIF data that say how an image is turned.
std::string exif_of(std::uint8_t orientation, bool is_big) {
  const auto number = [&](unsigned value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
      text += static_cast<char>(value >> (8 * (is_big ? bytes - 1 - i : i)));
    }
    return text;
  };
  const auto entry = [&](unsigned tag, unsigned type, unsigned value) {
    const std::string text = number(value, type == 3 ? 2 : 4);
    return number(tag, 2) + number(type, 2) + number(1, 4) + text + std::string(4 - text.size(), 0);
  };
  return (is_big ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) +
         entry(0x0100, 4, 16) + entry(0x0112, 3, orientation) + number(0, 4);
}

// The file with an EXIF marker.
std::string with_orientation(const std::string& jpeg, std::uint8_t orientation, bool is_big) {
  const std::string content = std::string("Exif\0\0", 6) + exif_of(orientation, is_big);
  const std::size_t size = content.size() + 2;
  std::string marker = "\xFF\xE1";
  marker += static_cast<char>(size >> 8U);
  marker += static_cast<char>(size);
  return jpeg.substr(0, 2) + marker + content + jpeg.substr(2);
}

// The file with an EXIF chunk before its first chunk of that name.
std::string with_exif(const std::string& png, const std::string& before, const std::string& exif) {
  const std::size_t place = png.find(before) - 4;
  return png.substr(0, place) + png_chunk("eXIf", exif) + png.substr(place);
}

// A JPEG of 8 rows of 16 pixels that differ.
std::string jpeg_of_slopes(int channels) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 16; ++x) {
      for (int c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<std::uint8_t>(20 + 20 * y + 3 * x + 10 * c));
      }
    }
  }
  return make_jpeg(16, channels, pixels, [](jpeg_compress_struct& encoder) {
    encoder.image_height = 8;
    jpeg_set_quality(&encoder, 100, TRUE);
  });
}

// By the words of EXIF: on which side of the image that is seen the file's first row is, and its
// first column.
enum class Side { kTop, kBottom, kLeft, kRight };

// Where of that image, of so many rows and columns, the file's pixel (row, column) is.
std::int64_t place_seen(Side first_row, Side first_column, const Record& seen, std::int64_t row,
                        std::int64_t column) {
  std::int64_t y = 0, x = 0;
  for (const auto& [side, distance] : {std::pair(first_row, row), {first_column, column}}) {
    if (side == Side::kTop) y = distance;
    if (side == Side::kBottom) y = seen.height - 1 - distance;
    if (side == Side::kLeft) x = distance;
    if (side == Side::kRight) x = seen.width - 1 - distance;
  }
  return y * seen.width + x;
}

// Pixels of `seen` that are not those of the file, as they lie in it, turned so.
int misplaced(const Record& stored, const Record& seen, std::uint8_t orientation) {
  static const std::vector<std::pair<Side, Side>> sides = {
      {Side::kTop, Side::kLeft},  {Side::kTop, Side::kRight},    {Side::kBottom, Side::kRight},
      {Side::kBottom, Side::kLeft}, {Side::kLeft, Side::kTop},   {Side::kRight, Side::kTop},
      {Side::kRight, Side::kBottom}, {Side::kLeft, Side::kBottom}};
  const auto& [first_row, first_column] = sides[orientation - 1U];
  CHECK(seen.height == (orientation < 5 ? stored.height : stored.width));
  CHECK(seen.width == (orientation < 5 ? stored.width : stored.height));
  REQUIRE(seen.bytes.size() == stored.bytes.size());
  const std::int64_t plane = stored.height * stored.width;
  int wrong = 0;
  for (std::int64_t i = 0; i < std::ssize(stored.bytes); ++i) {
    const std::int64_t row = i % plane / stored.width, column = i % stored.width;
    const std::int64_t place =
        i / plane * plane + place_seen(first_row, first_column, seen, row, column);
    wrong += seen.bytes[static_cast<std::size_t>(place)] !=
             stored.bytes[static_cast<std::size_t>(i)];
  }
  return wrong;
}

TEST_CASE("a JPEG that a camera has marked as turned is turned upright, as OpenCV does") {
  const int channels = GENERATE(1, 3);
  const bool is_big = GENERATE(false, true);
  const ImageColor color = GENERATE(ImageColor::kColor, ImageColor::kGray);
  const std::string plain = jpeg_of_slopes(channels);
  Record stored, seen;
  REQUIRE(decode(plain, color, stored));
  REQUIRE(stored.height == 8);
  for (std::uint8_t orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(channels, is_big, static_cast<int>(orientation));
    REQUIRE(decode(with_orientation(plain, orientation, is_big), color, seen));
    CHECK(misplaced(stored, seen, orientation) == 0);
  }
}

// As Debian's OpenCV 4.6 was seen to do.
TEST_CASE("a PNG whose EXIF says that it is turned is turned upright, as OpenCV does") {
  const bool is_big = GENERATE(false, true);
  const std::string before = GENERATE("IDAT", "IEND");
  const ImageColor color = GENERATE(ImageColor::kColor, ImageColor::kGray);
  std::vector<std::uint8_t> slope(24);
  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = static_cast<std::uint8_t>(10 * i);
  const std::string plain = png_of(PNG_FORMAT_RGBA, slope);
  Record stored, seen;
  REQUIRE(decode(plain, color, stored));
  for (std::uint8_t orientation = 1; orientation <= 8; ++orientation) {
    CAPTURE(before, is_big, static_cast<int>(orientation));
    REQUIRE(decode(with_exif(plain, before, exif_of(orientation, is_big)), color, seen));
    CHECK(misplaced(stored, seen, orientation) == 0);
  }
}

TEST_CASE("of a PNG's EXIF data the first count; damaged ones, or that nobody asks for, do not") {
  const std::string plain = png_of(PNG_FORMAT_RGB, {1, 2, 3, 4, 5, 6, 7, 8, 9,  //
                                                    10, 11, 12, 13, 14, 15, 16, 17, 18});
  const std::string exif = exif_of(6, true);
  const std::string marked = with_exif(plain, "IDAT", exif);
  Record stored, seen;
  REQUIRE(decode(plain, ImageColor::kColor, stored));
  REQUIRE(decode(with_exif(marked, "IEND", exif_of(3, true)), ImageColor::kColor, seen));
  CHECK(misplaced(stored, seen, 6) == 0);
  std::string wrong_sum = marked;
  wrong_sum[marked.find("eXIf") + 10] ^= 1;
  for (const std::string& file :
       {wrong_sum, with_exif(plain, "IDAT", std::string("Exif\0\0", 6) + exif),
        with_exif(plain, "IDAT", exif.substr(0, 20)), with_exif(plain, "IDAT", exif_of(9, true))}) {
    REQUIRE(decode(file, ImageColor::kColor, seen));
    CHECK(misplaced(stored, seen, 1) == 0);
  }
  // As with IMREAD_UNCHANGED.
  REQUIRE(decode(marked, ImageColor::kNative, seen));
  CHECK(misplaced(stored, seen, 1) == 0);
}

TEST_CASE("an orientation that does not exist, or that nobody asks for, changes nothing") {
  const std::string plain = jpeg_of_slopes(3);
  Record stored, seen;
  REQUIRE(decode(plain, ImageColor::kColor, stored));
  for (const int none : {0, 9, 255}) {
    const auto orientation = static_cast<std::uint8_t>(none);
    REQUIRE(decode(with_orientation(plain, orientation, false), ImageColor::kColor, seen));
    CHECK((seen.bytes == stored.bytes));
  }
  // As with OpenCV's IMREAD_UNCHANGED, by which Caffe reads encoded datums.
  REQUIRE(decode(with_orientation(plain, 6, false), ImageColor::kNative, seen));
  CHECK((seen.bytes == stored.bytes));
  // A directory that ends early, or says that it lies elsewhere.
  const std::string marked = with_orientation(plain, 6, false);
  for (std::size_t at = 12; at < 50; ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = marked;
      changed[at] = byte;
      REQUIRE(decode(changed, ImageColor::kColor, seen));
      REQUIRE(seen.bytes.size() == stored.bytes.size());
    }
  }
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
