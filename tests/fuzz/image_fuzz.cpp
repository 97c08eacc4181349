// PNG, JPEG, WebP, TIFF, BMP and PNM files.
#include <speedo/base/assert.hpp>

#include "data/image/encoded_image.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(image)(Bytes bytes) {
  Input input(bytes);
  const auto color = static_cast<ImageColor>(input.byte() % 3U);
  Record record;
  if (!decode_image(input.left(), color, record)) return;
  SPEEDO_ASSERT(record.bytes.size() == static_cast<std::size_t>(record.count()));
  SPEEDO_ASSERT(color != ImageColor::kColor || record.channels == 3);
  SPEEDO_ASSERT(color != ImageColor::kGray || record.channels == 1);
}

}  // namespace
}  // namespace speedo::fuzz
