#pragma once

#include <string>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

namespace speedo {

// Whether encode_image() writes this encoding.
bool can_encode(const std::string& encoding);

// The image as a file of `encoding`, "png" or "jpg" (also "jpeg"), in any case; a JPEG has OpenCV's
// usual quality. Requires: bytes, one channel or three (blue, green, red). Errors: kUnsupported for
// other encodings; kData if the format cannot hold the image.
Result<std::string> encode_image(const Record& record, const std::string& encoding);

}  // namespace speedo
