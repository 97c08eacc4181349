// Each format's files become the same pixels; damaged and boastful ones are errors.

#include <speedo/base/random.hpp>

#include "data/image/encoded_image.hpp"
#include "data_support.hpp"
#include "image_support.hpp"
#include "jpeg_support.hpp"
#include "png_support.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

// The same as planes, blue first.
const std::vector<std::uint8_t> kPlanes = {30,  60,  90,  131, 161, 255, 20, 50,  80,
                                           121, 151, 181, 10,  40,  70,  11, 141, 171};

Result<void> decode_bytes(const std::string& file, ImageColor color, Record& record) {
  return decode_image(std::as_bytes(std::span(file)), color, record);
}

Record decoded(const std::string& file, ImageColor color = ImageColor::kNative) {
  Record record;
  const auto result = decode_bytes(file, color, record);
  if (!result) FAIL(result.error().message);
  return record;
}

std::string little(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xFFU);
  return text;
}

std::string bmp_header(std::int32_t height, unsigned bits, std::uint32_t data_at) {
  return "BM" + little(0, 4) + little(0, 4) + little(data_at, 4) + little(40, 4) + little(3, 4) +
         little(static_cast<std::uint32_t>(height), 4) + little(1, 2) + little(bits, 2) +
         std::string(24, '\0');
}

// `up`: the first row is the lowest, as usual.
std::string bmp_of(bool up) {
  std::string file = bmp_header(up ? 2 : -2, 24, 54);
  for (int y = 0; y < 2; ++y) {
    const int row = up ? 1 - y : y;
    for (int x = 0; x < 3; ++x) {
      for (int c = 2; c >= 0; --c) {
        file += static_cast<char>(kPixels[static_cast<std::size_t>((row * 3 + x) * 3 + c)]);
      }
    }
    file += std::string(3, '\0');
  }
  return file;
}

std::string text_of_bytes(const std::vector<std::uint8_t>& values) {
  return {values.begin(), values.end()};
}

TEST_CASE("what a library says of a damaged file is shown on one line") {
  const TempDir folder;
  std::string file = tiff_of(folder, COMPRESSION_ADOBE_DEFLATE);
  // NumberOfInks instead of PlanarConfiguration: libtiff refuses it in two lines.
  const std::size_t entry = file.find(little(284, 2) + little(3, 2) + little(1, 4));
  REQUIRE(entry != std::string::npos);
  file.replace(entry, 2, little(334, 2));
  Record record;
  const auto decoded = decode_bytes(file, ImageColor::kNative, record);
  REQUIRE_FALSE(decoded);
  CAPTURE(decoded.error().message);
  CHECK(decoded.error().message.find("is a damaged TIFF (Warning image") != std::string::npos);
  CHECK(decoded.error().message.find('\n') == std::string::npos);
}

TEST_CASE("BMP, PNM, WebP and TIFF become planes, blue first") {
  const TempDir folder;
  const std::string text =
      "P3 # red, green, blue\n3 2\n255\n10 20 30 40 50 60 70 80 90\n"
      "11 121 131 141 151 161 171 181 255\n";
  for (const std::string& file :
       {bmp_of(true), bmp_of(false), "P6 3 2 255\n" + text_of_bytes(kPixels), text, webp_of(),
        tiff_of(folder, COMPRESSION_NONE), tiff_of(folder, COMPRESSION_LZW),
        tiff_of(folder, COMPRESSION_ADOBE_DEFLATE)}) {
    const Record record = decoded(file);
    CHECK(record.channels == 3);
    CHECK(record.height == 2);
    CHECK(record.width == 3);
    CHECK(record.bytes == kPlanes);
    CHECK(decoded(file, ImageColor::kGray).channels == 1);
  }
}

// The planes are OpenCV 4.6's, whose flags make no difference here.
TEST_CASE("a TIFF that says it is turned is turned upright, whatever color is asked for") {
  const TempDir folder;
  const std::vector<std::vector<std::uint8_t>> blue = {
      {30, 60, 90, 131, 161, 255}, {90, 60, 30, 255, 161, 131}, {255, 161, 131, 90, 60, 30},
      {131, 161, 255, 30, 60, 90}, {30, 131, 60, 161, 90, 255}, {131, 30, 161, 60, 255, 90},
      {255, 90, 161, 60, 131, 30}, {90, 255, 60, 161, 30, 131}};
  for (std::uint16_t orientation = 1; orientation <= 8; ++orientation) {
    const std::string file = tiff_of(folder, COMPRESSION_LZW, orientation);
    for (const ImageColor color : {ImageColor::kNative, ImageColor::kColor}) {
      CAPTURE(orientation, color);
      const Record record = decoded(file, color);
      CHECK(record.height == (orientation < 5 ? 2 : 3));
      CHECK(record.width == (orientation < 5 ? 3 : 2));
      CHECK(std::vector(record.bytes.begin(), record.bytes.begin() + 6) == blue[orientation - 1U]);
    }
  }
}

TEST_CASE("gray and bit maps stay gray; 16 bits lose the lower ones") {
  const Record gray = decoded("P2 4 1 15\n0 3 10 15\n");
  CHECK(gray.channels == 1);
  CHECK(gray.bytes == std::vector<std::uint8_t>{0, 51, 170, 255});
  const Record wide = decoded("P5 1 2 65535\n" + std::string("\x12\x34\xff\x00", 4));
  CHECK(wide.bytes == std::vector<std::uint8_t>{0x12, 0xff});
  const Record bits = decoded("P4 10 1\n" + std::string("\x80\x40", 2));
  CHECK(bits.bytes == std::vector<std::uint8_t>{0, 255, 255, 255, 255, 255, 255, 255, 255, 0});
  CHECK(decoded("P1 3 1\n101").bytes == std::vector<std::uint8_t>{0, 255, 0});
  // A palette of two grays, one bit a pixel.
  std::string palette = bmp_header(1, 1, 62) + std::string("\x10\x10\x10\0\xf0\xf0\xf0\0", 8);
  palette[46] = 2;
  const Record named = decoded(palette + std::string("\xa0\0\0\0", 4));
  CHECK(named.channels == 1);
  CHECK(named.bytes == std::vector<std::uint8_t>{0xf0, 0x10, 0xf0});
}

TEST_CASE("a PNM's largest value scales decimals of a byte alone, as in OpenCV") {
  const auto check = [](const std::string& file, const std::vector<std::uint8_t>& planes) {
    CAPTURE(file);
    CHECK(decoded(file).bytes == planes);
  };
  check("P5 4 1 15\n" + std::string("\x00\x05\x0a\x0f", 4), {0, 5, 10, 15});
  check("P6 1 1 100\n" + std::string("\x07\x32\x64", 3), {100, 50, 7});
  check("P5 3 1 1000\n" + std::string("\x00\xff\x01\xf4\x03\xe8", 6), {0, 1, 3});
  check("P2 3 1 1000\n255 500 1000\n", {0, 1, 3});
  check("P3 1 1 100\n7 50 100\n", {255, 127, 17});
  Record record;
  for (const std::string beyond : {"P5 1 1 15\n\x10", "P2 1 1 15\n16\n", "P2 1 1 1000\n1001\n"}) {
    check_error(decode_bytes(beyond, ImageColor::kNative, record), ErrorCode::kData, "damaged PNM");
  }
}

// The values are OpenCV 4.6's: its libpng makes the gray of all 16 bits, and cuts that.
TEST_CASE("a PNG of 16 bits becomes gray before it loses the lower ones") {
  std::vector<std::uint8_t> wide, clear;
  for (const std::uint16_t value : {0xa3d4, 0x7d3c, 0x9986, 0xa41b, 0xe164, 0xac2f, 0x05cc, 0xce14,
                                    0xabb8, 0xfac2, 0x492a, 0xa157, 0x218d, 0x6891, 0x9239, 0x83ec,
                                    0x7806, 0xced5}) {
    for (std::vector<std::uint8_t>* pixels : {&wide, &clear}) {
      pixels->push_back(static_cast<std::uint8_t>(value >> 8U));
      pixels->push_back(static_cast<std::uint8_t>(value & 0xFFU));
    }
    if (wide.size() % 6 == 0) clear.insert(clear.end(), {0x12, 0x34});
  }
  const std::vector<std::uint8_t> grays = {140, 201, 142, 136, 88, 133};
  const Record gray = decoded(png_file(PNG_COLOR_TYPE_RGB, 16, wide, 3), ImageColor::kGray);
  CHECK(gray.channels == 1);
  CHECK(gray.bytes == grays);
  const std::string alpha = png_file(PNG_COLOR_TYPE_RGB_ALPHA, 16, clear, 4);
  CHECK(decoded(alpha, ImageColor::kGray).bytes == grays);
}

TEST_CASE("a WebP becomes gray by finer weights than other formats, as in OpenCV 4.6") {
  const std::vector<std::uint8_t> pixels = {218, 123, 1,   55,  77,  104, 98,  245, 56,
                                            67,  231, 148, 127, 232, 196, 107, 212, 176};
  const std::vector<std::uint8_t> grays = {138, 73, 180, 173, 197, 177};
  CHECK(decoded(webp_of(pixels), ImageColor::kGray).bytes == grays);
}

TEST_CASE("a PNG's gamma is not applied, 16 bits become the upper 8, alpha goes unless native") {
  std::vector<std::uint8_t> wide;
  for (const std::uint8_t value : kPixels) {
    wide.push_back(value);
    wide.push_back(0xAB);
  }
  CHECK(decoded(png_file(PNG_COLOR_TYPE_RGB, 16, wide, 3)).bytes == kPlanes);
  std::vector<std::uint8_t> clear;
  for (std::size_t i = 0; i < kPixels.size(); i += 3) {
    clear.insert(clear.end(), {kPixels[i], kPixels[i + 1], kPixels[i + 2], 7});
  }
  const std::string file = png_file(PNG_COLOR_TYPE_RGB_ALPHA, 8, clear, 4);
  CHECK(decoded(file).channels == 4);
  CHECK(decoded(file).bytes[18] == 7);
  CHECK(decoded(file, ImageColor::kColor).bytes == kPlanes);
}

TEST_CASE("a PNG's gray that counts as clear is gray all the same, as OpenCV has it") {
  const std::string clear = png_chunk("tRNS", std::string("\0\3", 2));
  const auto with_clear = [&](std::string file) {
    return file.insert(file.find("IDAT") - 4, clear);
  };
  for (const ImageColor color : {ImageColor::kNative, ImageColor::kGray}) {
    CAPTURE(color);
    const Record gray = decoded(with_clear(png_file(PNG_COLOR_TYPE_GRAY, 8, {1, 2, 3, 4, 5, 6}, 1)),
                                color);
    CHECK(gray.channels == 1);
    CHECK(gray.bytes == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6});
    const Record wide = decoded(
        with_clear(png_file(PNG_COLOR_TYPE_GRAY, 16, {0, 3, 2, 0, 4, 0, 6, 0, 8, 0, 9, 0}, 1)),
        color);
    CHECK(wide.bytes == std::vector<std::uint8_t>{0, 2, 4, 6, 8, 9});
  }
  const Record alpha = decoded(png_file(PNG_COLOR_TYPE_GRAY_ALPHA, 8,
                                        {1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9}, 2));
  CHECK(alpha.channels == 4);
}

TEST_CASE("a damaged image of any format is an error, never a fault") {
  const TempDir folder;
  Random random(test::fresh_seed());
  Record record;
  const std::string jpeg = make_jpeg(16, 3, std::vector<std::uint8_t>(48, 99), [](auto&) {});
  for (const std::string& whole :
       {bmp_of(true), "P6 3 2 255\n" + text_of_bytes(kPixels), webp_of(), jpeg,
        tiff_of(folder, COMPRESSION_LZW), png_file(PNG_COLOR_TYPE_RGB, 8, kPixels, 3)}) {
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      decode_bytes(whole.substr(0, cut), ImageColor::kColor, record)
          .ignore("it may be an end mark");
    }
    CHECK_FALSE(decode_bytes(whole.substr(0, whole.size() / 2), ImageColor::kColor, record));
    for (int i = 0; i < 400; ++i) {
      std::string changed = whole;
      changed[static_cast<std::size_t>(random.below(changed.size()))] =
          static_cast<char>(random.below(256));
      decode_bytes(changed, ImageColor::kColor, record).ignore("the change may be harmless");
    }
  }
}

TEST_CASE("a JPEG is whole without its last marker, and whatever version it says it is of") {
  const std::string whole = make_jpeg(16, 3, std::vector<std::uint8_t>(48, 99), [](auto&) {});
  Record expected, record;
  REQUIRE(decode_bytes(whole, ImageColor::kColor, expected));
  std::string other = whole;
  const std::size_t version = whole.find("JFIF") + 5;
  REQUIRE(version < whole.size());
  other[version] = 2;
  for (const std::string& file : {whole.substr(0, whole.size() - 2), other}) {
    REQUIRE(decode_bytes(file, ImageColor::kColor, record));
    CHECK(record.bytes == expected.bytes);
  }
  CHECK_FALSE(decode_bytes(whole.substr(0, whole.size() - 12), ImageColor::kColor, record));
}

TEST_CASE("images that announce more than their bytes can hold are refused") {
  Record record;
  std::string bomb = bmp_of(true);
  bomb.replace(18, 8, little(30000, 4) + little(30000, 4));
  check_error(decode_bytes(bomb, ImageColor::kColor, record), ErrorCode::kData, "30000x30000");
  check_error(decode_bytes("P6 40000 40000 255\nxxx", ImageColor::kColor, record), ErrorCode::kData,
              "40000x40000");
  check_error(decode_bytes("P6 2000 2000 255\nxxx", ImageColor::kColor, record), ErrorCode::kData,
              "cut off");
  check_error(decode_bytes("GIF89a", ImageColor::kColor, record), ErrorCode::kData,
              "neither PNG, JPEG, WebP, TIFF, BMP nor PNM");
  check_error(decode_bytes("", ImageColor::kColor, record), ErrorCode::kData, "is empty");
}

}  // namespace
}  // namespace speedo
