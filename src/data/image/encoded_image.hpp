#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

namespace speedo {

// What an encoded image becomes: the channels it has, or always three (blue, green, red), or one.
enum class ImageColor { kNative, kColor, kGray };

// Decompresses a PNG, JPEG, WebP, TIFF, BMP or PNM file into planar bytes, blue first, as Caffe
// does through OpenCV: 16 bits become the upper 8; unless color is kNative, alpha is left out, and
// a JPEG that a camera has marked as turned (EXIF) is turned upright. OpenCV does the latter from
// 3.1 on, but not with IMREAD_UNCHANGED, which is Caffe's way to read encoded datums; a TIFF is
// always turned upright. An image of more than kBlobElementsMax values, or of more than the file's
// bytes can hold, is refused before memory is taken for it. Errors: kData, kUnsupported; the caller
// puts the file's name before the message.
Result<void> decode_image(std::span<const std::byte> file, ImageColor color, Record& record);

// An image that is to be decoded, the record that it becomes, and what came of it.
struct ImageDecoding {
  std::span<const std::byte> file;
  Record* record = nullptr;
  Result<void> outcome = {};
};
// decode_image() of each, which a parser process is given together.
void decode_images(std::span<ImageDecoding> images, ImageColor color);

// A file that a list of images names; see resolve_path(). Errors: those of read_file().
Result<std::string> read_image_file(const std::string& name, const std::filesystem::path& base);

// decode_image() of what it holds. Errors begin with its name.
Result<void> decode_image_file(const std::string& name, std::string_view file, ImageColor color,
                               Record& record);
// What decoding a file came to: an error begins with the file's name.
Result<void> named_decoding(const std::string& name, Result<void> decoded);

}  // namespace speedo
