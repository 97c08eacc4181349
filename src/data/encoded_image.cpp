#include "data/encoded_image.hpp"

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <jpeglib.h>
#include <png.h>
#include <speedo/base/limits.hpp>

namespace speedo {

namespace {

Error bad_image(const std::string& what) {
  return Error{ErrorCode::kData, fmt::format("holds an encoded image that {}", what)};
}

Result<void> check_dims(std::uint64_t height, std::uint64_t width) {
  constexpr std::uint64_t kChannelsMax = 4;
  if (height == 0 || width == 0 ||
      height > static_cast<std::uint64_t>(kBlobElementsMax) / kChannelsMax / width) {
    return bad_image(fmt::format("announces {}x{} pixels", height, width));
  }
  return {};
}

// From rows of interleaved pixels to planes.
void set_planes(const std::vector<std::uint8_t>& pixels, std::int64_t channels, std::int64_t height,
                std::int64_t width, Record& record) {
  record.channels = channels;
  record.height = height;
  record.width = width;
  record.bytes.resize(pixels.size());
  const std::int64_t plane = height * width;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t i = 0; i < plane; ++i) {
      record.bytes[static_cast<std::size_t>(c * plane + i)] =
          pixels[static_cast<std::size_t>(i * channels + c)];
    }
  }
}

// Weights of blue, green and red in 1/32768, as libpng rounds 0.114, 0.587 and 0.299.
void to_gray(Record& record) {
  constexpr std::uint32_t kBlue = 3735, kGreen = 19235, kRed = 9798;
  const auto plane = static_cast<std::size_t>(record.height * record.width);
  for (std::size_t i = 0; i < plane; ++i) {
    const std::uint32_t blue = record.bytes[i], green = record.bytes[plane + i],
                        red = record.bytes[2 * plane + i];
    record.bytes[i] =
        static_cast<std::uint8_t>((kBlue * blue + kGreen * green + kRed * red + 16384U) >> 15U);
  }
  record.bytes.resize(plane);
  record.channels = 1;
}

Result<void> decode_png(std::span<const std::byte> file, ImageColor color, Record& record) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    return bad_image(fmt::format("is a damaged PNG ({})", image.message));
  }
  const bool gray = (image.format & PNG_FORMAT_FLAG_COLOR) == 0;
  const bool alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0 && color == ImageColor::kNative;
  if (auto checked = check_dims(image.height, image.width); !checked) {
    png_image_free(&image);
    return checked;
  }
  const bool want_gray = gray && color != ImageColor::kColor;
  image.format = alpha ? PNG_FORMAT_BGRA : want_gray ? PNG_FORMAT_GRAY : PNG_FORMAT_BGR;
  const std::int64_t channels = alpha ? 4 : want_gray ? 1 : 3;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image));
  png_color background{};
  if (png_image_finish_read(&image, &background, pixels.data(), 0, nullptr) == 0) {
    return bad_image(fmt::format("is a damaged PNG ({})", image.message));
  }
  set_planes(pixels, channels, image.height, image.width, record);
  if (color == ImageColor::kGray && channels == 3) to_gray(record);
  return {};
}

struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
};

void leave_jpeg(j_common_ptr decoder) {
  auto* errors = reinterpret_cast<JpegErrors*>(decoder->err);
  decoder->err->format_message(decoder, errors->text);
  std::longjmp(errors->back, 1);
}

// A warning means damaged data, of which libjpeg would make up the missing part.
void refuse_warning(j_common_ptr decoder, int level) {
  if (level < 0) leave_jpeg(decoder);
}

struct JpegImage {
  std::vector<std::uint8_t> pixels;
  std::int64_t channels = 0, height = 0, width = 0;
  bool too_large = false;
};

// libjpeg reports errors by a long jump into this function; all that owns memory is the caller's.
bool run_jpeg(std::span<const std::byte> file, ImageColor color, jpeg_decompress_struct& decoder,
              JpegErrors& errors, JpegImage& image) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&decoder, TRUE);
  const bool gray =
      decoder.num_components == 1 ? color != ImageColor::kColor : color == ImageColor::kGray;
  decoder.out_color_space = gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
  image.too_large = !check_dims(decoder.image_height, decoder.image_width).has_value();
  if (image.too_large) return true;
  jpeg_start_decompress(&decoder);
  image.channels = decoder.output_components;
  image.height = decoder.output_height;
  image.width = decoder.output_width;
  image.pixels.resize(static_cast<std::size_t>(image.channels * image.height * image.width));
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = image.pixels.data() +
                   static_cast<std::size_t>(decoder.output_scanline * image.width * image.channels);
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  return true;
}

Result<void> decode_jpeg(std::span<const std::byte> file, ImageColor color, Record& record) {
  JpegErrors errors{};
  jpeg_decompress_struct decoder{};
  decoder.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_jpeg;
  errors.manager.emit_message = refuse_warning;
  JpegImage image;
  const bool read = run_jpeg(file, color, decoder, errors, image);
  const std::uint64_t height = decoder.image_height, width = decoder.image_width;
  jpeg_destroy_decompress(&decoder);
  if (!read) return bad_image(fmt::format("is a damaged JPEG ({})", errors.text));
  if (image.too_large) return check_dims(height, width);
  set_planes(image.pixels, image.channels, image.height, image.width, record);
  return {};
}

bool begins_with(std::span<const std::byte> file, std::span<const std::uint8_t> magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

Result<void> decode_image(std::span<const std::byte> file, ImageColor color, Record& record) {
  constexpr std::uint8_t kPng[] = {0x89, 'P', 'N', 'G'};
  constexpr std::uint8_t kJpeg[] = {0xFF, 0xD8, 0xFF};
  record.floats.clear();
  if (begins_with(file, kPng)) return decode_png(file, color, record);
  if (begins_with(file, kJpeg)) return decode_jpeg(file, color, record);
  return Error{ErrorCode::kUnsupported,
               "holds an encoded image that is neither PNG nor JPEG; convert the data without "
               "encoding"};
}

}  // namespace speedo
