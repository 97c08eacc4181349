#include "data/image/encoded_image.hpp"

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <jpeglib.h>
#include <png.h>
#include <speedo/base/limits.hpp>

#include "data/claimed_size.hpp"
#include "data/random_file.hpp"

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

// Error: the image announces more than `file_bytes` of it can hold, or memory.
Result<void> check_pixels(std::uint64_t height, std::uint64_t width, std::uint64_t packed,
                          std::uint64_t capacity, std::uint64_t file_bytes) {
  const std::string subject =
      fmt::format("holds an encoded image of {} bytes that says it is {}x{} pixels and", file_bytes,
                  height, width);
  SPEEDO_TRY(check_claim(subject, {packed, capacity}));
  constexpr std::uint64_t kChannelsMax = 4;
  return check_memory(subject, height * width * kChannelsMax);
}

// A PNG begins with eight bytes, and a chunk: length, "IHDR", width, height, bits, color type.
// Returns the fewest bytes that its rows have before they are compressed.
std::uint64_t png_row_bytes(std::span<const std::byte> file) {
  constexpr std::size_t kBitsAt = 24, kColorAt = 25;
  constexpr std::uint64_t kChannels[] = {1, 0, 3, 1, 2, 0, 4};  // by color type
  if (file.size() <= kColorAt) return 0;
  const auto color = std::to_integer<std::size_t>(file[kColorAt]);
  if (color >= std::size(kChannels)) return 0;
  const auto bits = std::to_integer<std::uint64_t>(file[kBitsAt]);
  const std::uint64_t pixels =
      std::uint64_t{big32(file.data() + 16)} * std::uint64_t{big32(file.data() + 20)};
  return saturating_product(pixels, kChannels[color] * bits) / 8;
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
  auto checked = check_dims(image.height, image.width);
  if (checked) {
    checked = check_pixels(image.height, image.width, png_row_bytes(file),
                           saturating_product(file.size(), kDeflateRatioMax), file.size());
  }
  if (!checked) {
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
  Result<void> checked;
};

// A block of 8x8 values takes a bit at least, or next to nothing if its coding is arithmetic.
Result<void> check_jpeg(const jpeg_decompress_struct& decoder, std::uint64_t file_bytes) {
  SPEEDO_TRY(check_dims(decoder.image_height, decoder.image_width));
  std::uint64_t blocks = 0;
  for (int i = 0; i < decoder.num_components; ++i) {
    const jpeg_component_info& component = decoder.comp_info[i];
    blocks += std::uint64_t{component.width_in_blocks} * component.height_in_blocks;
  }
  constexpr std::uint64_t kBlockBytes = 64, kBlocksPerByteMax = 8;
  return check_pixels(decoder.image_height, decoder.image_width, blocks * kBlockBytes,
                      saturating_product(file_bytes, kBlocksPerByteMax * kBlockBytes), file_bytes);
}

// libjpeg leaves this function by a long jump where it meets an error, so nothing here may own
// memory while it is called: all that does is the caller's.
[[gnu::noinline]] void decompress(std::span<const std::byte> file, ImageColor color,
                                  jpeg_decompress_struct& decoder, JpegImage& image) {
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&decoder, TRUE);
  const bool gray =
      decoder.num_components == 1 ? color != ImageColor::kColor : color == ImageColor::kGray;
  decoder.out_color_space = gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
  image.checked = check_jpeg(decoder, file.size());
  if (!image.checked) return;
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
}

// Whether libjpeg met no error. Its long jump ends here, so no variable of this function, nor of
// one inlined into it, may change behind setjmp().
bool run_jpeg(std::span<const std::byte> file, ImageColor color, jpeg_decompress_struct& decoder,
              JpegErrors& errors, JpegImage& image) {
  if (setjmp(errors.back) != 0) return false;
  decompress(file, color, decoder, image);
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
  jpeg_destroy_decompress(&decoder);
  if (!read) return bad_image(fmt::format("is a damaged JPEG ({})", errors.text));
  if (!image.checked) return image.checked;
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
