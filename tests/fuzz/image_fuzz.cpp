// PNG, JPEG, WebP, TIFF, BMP and PNM files.
#include <speedo/base/assert.hpp>

#include "data/image/encoded_image.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"

namespace speedo::fuzz {
namespace {

SPEEDO_FUZZ_TARGET(image)(Bytes bytes) {
  Input input(bytes);
  const auto color = static_cast<ImageColor>(input.byte() % 3U);
  Record record;
  const MemoryFile file(input.left());
  const auto content = read_image_file(file.path(), {});
  SPEEDO_ASSERT(content);
  if (!decode_image_file("fuzz", *content, color, record)) return;
  SPEEDO_ASSERT(record.bytes.size() == static_cast<std::size_t>(record.count()));
  SPEEDO_ASSERT(color != ImageColor::kColor || record.channels == 3);
  SPEEDO_ASSERT(color != ImageColor::kGray || record.channels == 1);
}

}  // namespace
}  // namespace speedo::fuzz
