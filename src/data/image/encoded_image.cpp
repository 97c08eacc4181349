#include "data/image/encoded_image.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/file.hpp>
#include <speedo/base/remote_files.hpp>
#include <speedo/base/limits.hpp>

#include "base/shown_text.hpp"
#include "data/claimed_size.hpp"
#include "data/image/decoded_pixels.hpp"
#include "data/image/exif_orientation.hpp"
#include "data/image/image_task.hpp"
#include "data/parser/parser_processes.hpp"

namespace speedo {

namespace {

constexpr std::uint64_t kChannelsMax = 4;

// From rows of interleaved pixels to planes, of which `channels` are wanted.
void set_planes(const DecodedPixels& pixels, std::int64_t channels, Record& record) {
  record.channels = channels;
  record.height = pixels.height;
  record.width = pixels.width;
  const std::int64_t plane = pixels.height * pixels.width;
  record.bytes.resize(static_cast<std::size_t>(channels * plane));
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::uint8_t* from = pixels.values.data() + std::min(c, pixels.channels - 1);
    std::uint8_t* to = record.bytes.data() + c * plane;
    for (std::int64_t i = 0; i < plane; ++i, from += pixels.channels) to[i] = *from;
  }
}

// Weights of blue, green and red in 1/16384, as OpenCV rounds 0.114, 0.587 and 0.299. The decoders
// of PNG, JPEG and WebP have ways of their own.
void to_gray(Record& record) {
  constexpr std::uint32_t kBlue = 1868, kGreen = 9617, kRed = 4899;
  const auto plane = static_cast<std::size_t>(record.height * record.width);
  for (std::size_t i = 0; i < plane; ++i) {
    const std::uint32_t blue = record.bytes[i], green = record.bytes[plane + i],
                        red = record.bytes[2 * plane + i];
    record.bytes[i] =
        static_cast<std::uint8_t>((kBlue * blue + kGreen * green + kRed * red + 8192U) >> 14U);
  }
  record.bytes.resize(plane);
  record.channels = 1;
}

bool begins_with(std::span<const std::byte> file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

enum class ImageFormat { kPng, kJpeg, kWebp, kTiff, kBmp, kPnm, kNone };

ImageFormat format_of(std::span<const std::byte> file) {
  if (begins_with(file, "\x89PNG")) return ImageFormat::kPng;
  if (begins_with(file, "\xFF\xD8\xFF")) return ImageFormat::kJpeg;
  if (begins_with(file, "RIFF") && file.size() >= 12 && begins_with(file.subspan(8), "WEBP")) {
    return ImageFormat::kWebp;
  }
  if (begins_with(file, {"II*\0", 4}) || begins_with(file, {"MM\0*", 4})) return ImageFormat::kTiff;
  if (begins_with(file, "BM")) return ImageFormat::kBmp;
  const bool is_pnm = file.size() >= 2 && file[0] == std::byte{'P'} && file[1] >= std::byte{'1'} &&
                      file[1] <= std::byte{'6'};
  return is_pnm ? ImageFormat::kPnm : ImageFormat::kNone;
}

// The other formats' readers are ours.
bool is_read_by_library(ImageFormat format) {
  return format == ImageFormat::kPng || format == ImageFormat::kJpeg ||
         format == ImageFormat::kWebp || format == ImageFormat::kTiff;
}

// What the color wants of the pixels that the file holds.
void make_record(DecodedPixels& pixels, ImageColor color, Record& record) {
  if (color != ImageColor::kNative) turn_upright(pixels);
  const bool gray = pixels.channels == 1;
  const std::int64_t channels = color == ImageColor::kNative         ? pixels.channels
                                : color == ImageColor::kGray && gray ? 1
                                                                     : 3;
  set_planes(pixels, channels, record);
  if (color == ImageColor::kGray && !gray) to_gray(record);
}

Result<void> decode_here(std::span<const std::byte> file, ImageColor color, Record& record) {
  DecodedPixels pixels;
  SPEEDO_TRY(decode_pixels(file, color, pixels));
  make_record(pixels, color, record);
  return {};
}

// Of what libraries read, by a parser if there are any.
void decode_by_libraries(std::span<ImageDecoding* const> images, ImageColor color) {
  auto parser = take_parser();
  if (!parser || !*parser) {
    for (ImageDecoding* image : images) {
      image->outcome = parser ? decode_here(image->file, color, *image->record)
                              : Result<void>(parser.error());
    }
    return;
  }
  std::vector<std::span<const std::byte>> files;
  for (const ImageDecoding* image : images) files.push_back(image->file);
  const auto take = [&](std::size_t index, Result<DecodedPixels> pixels) {
    if (pixels) {
      make_record(*pixels, color, *images[index]->record);
    } else {
      images[index]->outcome = std::move(pixels).error();
    }
  };
  decode_in_helper(**parser, files, color, take);
}

}  // namespace

Error bad_image(const std::string& what) {
  return Error{ErrorCode::kData, fmt::format("holds an encoded image that {}", shown_text(what))};
}

void make_gray(DecodedPixels& pixels, const GrayWeights& weights) {
  const auto channels = static_cast<std::size_t>(pixels.channels);
  const std::size_t count = pixels.values.size() / channels;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* color = pixels.values.data() + i * channels;
    const std::uint32_t sum =
        weights.blue * color[0] + weights.green * color[1] + weights.red * color[2];
    pixels.values[i] = static_cast<std::uint8_t>((sum + weights.rounding) >> 15U);
  }
  pixels.resize(1, pixels.height, pixels.width);
}

Result<void> check_image(const AnnouncedImage& image) {
  if (image.height == 0 || image.width == 0 ||
      image.height > static_cast<std::uint64_t>(kBlobElementsMax) / kChannelsMax / image.width) {
    return bad_image(fmt::format("announces {}x{} pixels", image.height, image.width));
  }
  const std::string subject =
      fmt::format("holds an encoded image of {} bytes that says it is {}x{} pixels and",
                  image.file_bytes, image.height, image.width);
  SPEEDO_TRY(check_claim(subject, {image.packed, image.capacity}));
  return check_memory(subject, image.height * image.width * kChannelsMax);
}

Result<void> decode_pixels(std::span<const std::byte> file, ImageColor color,
                           DecodedPixels& pixels) {
  switch (format_of(file)) {
    case ImageFormat::kPng: return decode_png(file, color, pixels);
    case ImageFormat::kJpeg: return decode_jpeg(file, color, pixels);
    case ImageFormat::kWebp: return decode_webp(file, color, pixels);
    case ImageFormat::kTiff: return decode_tiff(file, pixels);
    case ImageFormat::kBmp: return decode_bmp(file, pixels);
    case ImageFormat::kPnm: return decode_pnm(file, pixels);
    case ImageFormat::kNone: break;
  }
  if (file.empty()) return bad_image("is empty");
  return bad_image(
      "is neither PNG, JPEG, WebP, TIFF, BMP nor PNM; convert it to one of these");
}

Result<void> decode_image(std::span<const std::byte> file, ImageColor color, Record& record) {
  ImageDecoding image{file, &record};
  decode_images(std::span(&image, 1), color);
  return std::move(image.outcome);
}

void decode_images(std::span<ImageDecoding> images, ImageColor color) {
  std::vector<ImageDecoding*> by_libraries;
  for (ImageDecoding& image : images) {
    image.record->floats.clear();
    if (is_read_by_library(format_of(image.file))) {
      by_libraries.push_back(&image);
    } else {
      image.outcome = decode_here(image.file, color, *image.record);
    }
  }
  if (!by_libraries.empty()) decode_by_libraries(by_libraries, color);
}

Result<std::string> read_image_file(const std::string& name, const std::filesystem::path& base) {
  constexpr std::size_t kImageFileBytesMax = std::size_t{256} << 20U;
  SPEEDO_ASSIGN(const std::filesystem::path file, find_file(name, base));
  return read_file(file, kImageFileBytesMax);
}

Result<void> decode_image_file(const std::string& name, std::string_view file, ImageColor color,
                               Record& record) {
  return named_decoding(name, decode_image(std::as_bytes(std::span(file)), color, record));
}

Result<void> named_decoding(const std::string& name, Result<void> decoded) {
  if (decoded) return decoded;
  return Error{decoded.error().code, fmt::format("'{}' {}", name, decoded.error().message)};
}

}  // namespace speedo
